// Makes the files that the command runs from. One file for everything that a short command needs: several files to find and to
// compile cost a third of its time. What only a long-lived command or a rare moment needs is a file of its own.

import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'

const root = resolve(import.meta.dirname, '..')
const at = (path: string): string => resolve(root, path)

/** What is imported dynamically and stays a file of its own: modules of ours, and packages for a rare moment. */
const APART: Readonly<Record<string, string>> = {
  [at('src/commands/serve.ts')]: './serve.cjs',
  [at('src/prompts.ts')]: './prompts.cjs',
  '@cfworker/json-schema': './json-schema.cjs',
  '@modelcontextprotocol/client': './sign-in.cjs',
}
/** Prefix of an entry that is a package of the host. */
const PACKAGE = 'package:'

const apart: Plugin = {
  name: 'apart',
  setup(builder) {
    builder.onResolve({ filter: /./ }, ({ path, resolveDir, kind }) => {
      if (kind !== 'dynamic-import') return undefined
      const file = APART[path.startsWith('.') ? resolve(resolveDir, path) : path]
      return file === undefined ? undefined : { path: file, external: true }
    })
    builder.onResolve({ filter: new RegExp(`^${PACKAGE}`) }, ({ path }) =>
      builder.resolve(path.slice(PACKAGE.length), { resolveDir: at('../host'), kind: 'import-statement' }),
    )
  },
}

/** A program that the host starts as a process of its own, beside the file that it runs from. */
const program = await build({
  entryPoints: { 'keyring-program': at('../host/src/store/keyring-program.ts') },
  outdir: at('dist'),
  write: false,
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'esm',
  // A native module: only where it is installed, and found from where this file lies.
  external: ['@napi-rs/keyring'],
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
})

const { outputFiles, metafile } = await build({
  entryPoints: {
    convoke: at('src/main.ts'),
    serve: at('src/commands/serve.ts'),
    prompts: at('src/prompts.ts'),
    'json-schema': `${PACKAGE}@cfworker/json-schema`,
    'sign-in': `${PACKAGE}@modelcontextprotocol/client`,
  },
  outdir: at('dist'),
  outExtension: { '.js': '.cjs' },
  write: false,
  metafile: true,
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'cjs',
  conditions: ['@convoke/source', 'node', 'import'],
  mainFields: ['module', 'main'],
  plugins: [apart],
  // Only where a program asks its host for it; the command never does.
  external: ['undici', 'undici/*'],
  define: { 'import.meta.url': '__convokeUrl', 'import.meta.dirname': '__dirname' },
  banner: { js: "const __convokeUrl = require('node:url').pathToFileURL(__filename).href;" },
  // Half of the text is space; names stay, so that a stack trace can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'warning',
})

/** Folders of the packages of others that went into the files, by name. */
function packagesIn(inputs: readonly string[]): ReadonlyMap<string, string> {
  const found = inputs.flatMap((input) => {
    const match = /^(.*node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(input)
    return match?.[1] === undefined || match[2] === undefined ? [] : [[match[2], resolve(match[1])] as const]
  })
  return new Map(found.sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** Their licences ask that the text goes along; who ships no text is named with the licence it declares. */
async function licences(): Promise<string> {
  const texts = await Promise.all(
    [...packagesIn(Object.keys(metafile.inputs))].map(async ([name, folder]) => {
      const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry))
      if (file !== undefined) return `${name}\n\n${await readFile(join(folder, file), 'utf8')}`
      const { license, author } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Declared
      if (license === undefined) throw new Error(`${name} declares no licence`)
      return `${name}\n\n${license}, ${typeof author === 'string' ? author : (author?.name ?? 'its authors')}\n`
    }),
  )
  return texts.join(`\n${'-'.repeat(78)}\n\n`)
}

interface Declared {
  readonly license?: string
  readonly author?: string | { readonly name: string }
}

// A command that starts while this runs sees the old file or the new one.
async function put(path: string, contents: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  await writeFile(temporary, contents)
  await rename(temporary, path)
}

await mkdir(at('dist'), { recursive: true })
for (const { path, contents } of [...outputFiles, ...program.outputFiles]) await put(path, contents)
await put(at('dist/THIRD-PARTY-LICENCES.txt'), await licences())
