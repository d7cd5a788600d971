// The version of what would be started, read from the disk: an updated package may list other tools, and is not asked for them before it is started.
import { isObject } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { Platform } from '../protocol/index.ts'

/** Folders above a program in which its package is looked for. */
const PARENTS_MAX = 8
const PACKAGE_BYTES_MAX = 256 * 1024

/**
 * `NAME@VERSION` of the package that a stdio server's program or script lies in, and of a script without a package its time and size;
 * undefined when nothing can be read. Never rejects. Only absolute paths are looked at: what a search would find may change.
 */
export async function localVersion(
  { transport }: Pick<ServerDefinition, 'transport'>,
  files: Platform['files'],
): Promise<string | undefined> {
  if (transport.kind !== 'stdio') return undefined
  const script = [transport.command, ...transport.args].find(
    (text) => text.startsWith('/') && files.isFile(text) && isScript(text),
  )
  if (script === undefined) return undefined
  try {
    const version = await packageVersion(script, files)
    if (version !== undefined) return version
    const facts = await files.inspect(script)
    return facts === undefined ? undefined : `${facts.bytes}/${facts.modifiedAtMs}`
  } catch {
    return undefined
  }
}

/** What an interpreter runs; the interpreter itself changes no tools. */
function isScript(path: string): boolean {
  return /\.(?:[cm]?[jt]s|py)$/.test(path) || path.includes('/node_modules/')
}

async function packageVersion(script: string, files: Platform['files']): Promise<string | undefined> {
  let folder = script
  for (let count = 0; count < PARENTS_MAX && folder !== ''; count++) {
    folder = folder.slice(0, folder.lastIndexOf('/'))
    const path = `${folder}/package.json`
    if (!files.isFile(path)) continue
    const text = (await files.read(path, PACKAGE_BYTES_MAX)).toString('utf8')
    const content: unknown = JSON.parse(text)
    if (!isObject(content)) return undefined
    const { name, version } = content
    return typeof version === 'string' ? `${String(name ?? '')}@${version}` : undefined
  }
  return undefined
}
