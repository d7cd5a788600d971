// Makes few files of the many of @convoke/wire and @convoke/host: finding and compiling a hundred small modules costs three times as much as all that they
// do at the start. What is imported dynamically stays a file of its own. Types and source maps stay with the sources.
import './assert-node.ts'
import { copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { build } from 'esbuild'

const root = resolve(import.meta.dirname, '..')

/** Entries by package; what the host takes from the wire stays the wire's, so that there is one of each class. */
const ENTRIES: Readonly<Record<string, readonly string[]>> = {
  wire: ['index.ts', 'server/index.ts'],
  host: ['index.ts', 'extension.ts', 'plugins.ts', 'report.ts'],
}
/** Programs of their own, which stand beside what starts them. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = { host: ['store/keyring-program.ts'] }
/** Packages that are loaded only for a rare moment, or belong to somebody else's installation. */
const EXTERNAL = [
  '@convoke/wire',
  '@modelcontextprotocol/client',
  '@cfworker/json-schema',
  '@napi-rs/keyring',
  'undici',
  'undici/*',
]
/** Packed in by the host: it is not published in a form that Node loads quickly. */
const PACKED_IN = 'jsonc-parser'

for (const [name, entries] of Object.entries(ENTRIES)) {
  const source = resolve(root, 'packages', name, 'src')
  const target = resolve(root, 'packages', name, 'dist/bundle')
  const { outputFiles } = await build({
    entryPoints: [
      ...entries.map((entry) => ({ in: join(source, entry), out: entry.replace(/\.ts$/, '') })),
      ...(PROGRAMS[name] ?? []).map((entry) => ({ in: join(source, entry), out: basename(entry, '.ts') })),
    ],
    outbase: source,
    outdir: target,
    write: false,
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node22',
    format: 'esm',
    mainFields: ['module', 'main'],
    external: EXTERNAL,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'warning',
  })
  for (const { path, contents } of outputFiles) await put(path, contents)
  await removeOthers(target, new Set(outputFiles.map(({ path }) => relative(target, path))))
}
const licence = `dist/bundle/${PACKED_IN}.LICENSE.txt`
await copyFile(resolve(root, 'node_modules', PACKED_IN, 'LICENSE.md'), resolve(root, 'packages/host', licence))

/** A program that starts while this runs sees the old file or the new one. */
async function put(path: string, contents: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}.tmp`
  await writeFile(temporary, contents)
  await rename(temporary, path)
}

/** Parts of earlier builds have other names. */
async function removeOthers(folder: string, kept: ReadonlySet<string>): Promise<void> {
  const found = await readdir(folder, { recursive: true })
  for (const name of found.filter((one) => /\.(js|map)$/.test(one) && !kept.has(one))) await rm(join(folder, name))
}
