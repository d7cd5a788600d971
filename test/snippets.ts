// Takes the code out of our Markdown and TSDoc, so that it can be compiled and run.
import { glob, readFile } from 'node:fs/promises'

export interface Snippet {
  /** `README.md:12` */
  readonly place: string
  readonly language: string
  /** What stands behind the language: `ts no-run`. */
  readonly note: string
  readonly text: string
}

const FENCE = /^(?<indent>[ \t]*(?:\* )?)```(?<language>[a-z]+)(?<note>[^\n]*)\n(?<body>[\s\S]*?)^\k<indent>```/gm

function snippetsIn(file: string, text: string): Snippet[] {
  return [...text.matchAll(FENCE)].map(({ groups, index }) => {
    const { indent = '', language = '', note = '', body = '' } = groups ?? {}
    const line = text.slice(0, index).split('\n').length
    const lines = body
      .split('\n')
      .map((one) => (one.startsWith(indent) ? one.slice(indent.length) : one.trimStart().replace(/^\*$/, '')))
    return { place: `${file}:${line}`, language, note: note.trim(), text: lines.join('\n') }
  })
}

/** Every fenced block of the project's own Markdown and of the TSDoc of its sources. */
export async function allSnippets(root: string): Promise<Snippet[]> {
  const found: Snippet[] = []
  const patterns = ['*.md', 'docs/**/*.md', 'packages/*/README.md', 'packages/*/src/**/*.ts', 'examples/**/*.md']
  for (const pattern of patterns) {
    for await (const file of glob(pattern, { cwd: root })) {
      found.push(...snippetsIn(file, await readFile(`${root}/${file}`, 'utf8')))
    }
  }
  return found
}
