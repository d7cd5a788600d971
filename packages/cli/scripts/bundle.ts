// Makes the files that the command runs from. One file for everything that a short command needs: several files to find and to
// compile cost a third of its time. What only a long-lived command or a rare moment needs is a file of its own.

import { mkdir, rename, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'

const root = resolve(import.meta.dirname, '..')
const at = (path: string): string => resolve(root, path)

/** Modules whose dynamic import stays one, with the file that it becomes. */
const APART: Readonly<Record<string, string>> = {
  [at('src/commands/serve.ts')]: './serve.cjs',
  [at('src/prompts.ts')]: './prompts.cjs',
}

const apart: Plugin = {
  name: 'apart',
  setup(builder) {
    builder.onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir, kind }) => {
      const file = kind === 'dynamic-import' ? APART[resolve(resolveDir, path)] : undefined
      return file === undefined ? undefined : { path: file, external: true }
    })
  },
}

const { outputFiles } = await build({
  entryPoints: { convoke: at('src/main.ts'), serve: at('src/commands/serve.ts'), prompts: at('src/prompts.ts') },
  outdir: at('dist'),
  outExtension: { '.js': '.cjs' },
  write: false,
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'cjs',
  conditions: ['@convoke/source', 'node', 'import'],
  mainFields: ['module', 'main'],
  plugins: [apart],
  // Sign-in is loaded after a 401, from the installed package; undici only where a host asks for it.
  external: ['@modelcontextprotocol/*', 'undici', 'undici/*'],
  define: { 'import.meta.url': '__convokeUrl', 'import.meta.dirname': '__dirname' },
  banner: { js: "const __convokeUrl = require('node:url').pathToFileURL(__filename).href;" },
  legalComments: 'eof',
  logLevel: 'warning',
})

// A command that starts while this runs sees the old file or the new one.
await mkdir(at('dist'), { recursive: true })
for (const { path, contents } of outputFiles) {
  const temporary = `${path}.${process.pid}.tmp`
  await writeFile(temporary, contents)
  await rename(temporary, path)
}
