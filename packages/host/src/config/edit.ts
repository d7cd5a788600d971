// Changes one entry of a configuration file and keeps everything else of it: comments, order, line ends, mode.

import { type FileHandle, mkdir, open, readFile, readlink, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { HostError, type JsonObject } from '../base/index.ts'
import { parseDocument, propertiesOf } from './document.ts'
import { withoutServer, withServer } from './edit-text.ts'
import { codeOf, readConfigFile } from './read-file.ts'
import { serverNameFault } from './server-names.ts'

/** How an entry that is already there is treated. */
export interface AddServerOptions {
  /** Replace an entry of the same name. Default `false`: it is an error. */
  readonly replace?: boolean
}

/** How often an edit starts again because the file changed under it. */
const ATTEMPTS_MAX = 10
/** Longest wait for another process that edits the same file, in milliseconds. */
const LOCK_WAIT_MS_MAX = 5_000
/** A lock older than this was left by a process that is gone, in milliseconds; an edit takes a few. */
const LOCK_AGE_MS_MAX = 10_000
const LOCK_POLL_MS = 20

/** Behind `addServer` of `editing.ts`. @throws {HostError} */
export async function addServer(
  file: string,
  name: string,
  entry: JsonObject,
  options: AddServerOptions = {},
): Promise<void> {
  const fault = serverNameFault(name)
  if (fault !== undefined) throw refused(`The server name ${fault}`)
  await editFile(file, (text) => {
    if (hasServer(text, file, name) && options.replace !== true) {
      throw new HostError('ALREADY_DEFINED', `${file} already has a server ${JSON.stringify(name)}.`)
    }
    return withServer(text, name, entry)
  })
}

/** Behind `removeServer` of `editing.ts`. @throws {HostError} */
export async function removeServer(file: string, name: string): Promise<boolean> {
  let isRemoved = false
  await editFile(file, (text) => {
    const rest = hasServer(text, file, name) ? withoutServer(text, name) : undefined
    isRemoved = rest !== undefined
    return rest
  })
  return isRemoved
}

/** @throws {HostError} when the text is too damaged to be changed without losing something. */
function hasServer(text: string, file: string, name: string): boolean {
  const { root, faults, placeOf } = parseDocument(text)
  const [fault] = faults
  if (fault !== undefined) {
    const { line, column } = placeOf(fault.offset)
    throw refused(`${file}:${line}:${column}: ${fault.reason}. Correct it first; nothing was changed.`)
  }
  if (root === undefined) return false
  const servers = propertiesOf(root).find((property) => property.key === 'mcpServers')?.value
  if (root.type !== 'object' || (servers !== undefined && servers.type !== 'object')) {
    throw refused(`${file} is not an object with "mcpServers". Correct it first; nothing was changed.`)
  }
  return propertiesOf(servers).some((property) => property.key === name)
}

/** Reads, changes and writes the file; starts again when its content is not what was read. `change` gives undefined for "leave it". */
async function editFile(file: string, change: (text: string) => string | undefined): Promise<void> {
  const target = await targetOf(resolve(file))
  const makesFile = await fileIsMissing(target)
  if (makesFile && change('') === undefined) return
  if (makesFile) await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const release = await lock(target)
  try {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const before = await currentText(target)
      const after = change(before ?? '')
      if (after === undefined || after === before) return
      if (await replaceFile(target, before, after)) return
    }
  } finally {
    await release()
  }
  throw refused(`${file} keeps changing while it is edited. Nothing was changed.`)
}

/** The file behind a symbolic link, also one that does not exist yet, so that the link stays one. */
async function targetOf(path: string): Promise<string> {
  let target = path
  for (let hop = 0; hop < LINK_HOPS_MAX; hop += 1) {
    const link = await readlink(target).catch(() => undefined)
    if (link === undefined) return target
    target = resolve(dirname(target), link)
  }
  throw refused(`${path} is a link that leads nowhere. Nothing was changed.`)
}

/** Links behind links that are followed. */
const LINK_HOPS_MAX = 40

async function fileIsMissing(path: string): Promise<boolean> {
  return (await readConfigFile(path)).kind === 'missing'
}

async function currentText(path: string): Promise<string | undefined> {
  const outcome = await readConfigFile(path)
  switch (outcome.kind) {
    case 'missing':
      return undefined
    case 'unusable':
      throw refused(`${path} ${outcome.reason}. Nothing was changed.`)
    case 'text': {
      const isDamaged = outcome.notes.some((note) => note.code === 'CONFIG_FILE_ENCODING')
      if (isDamaged) throw refused(`${path} is not UTF-8 throughout. Correct it first; nothing was changed.`)
      return outcome.text
    }
  }
}

/** Gives `false` when the file is no longer what was read. */
async function replaceFile(target: string, before: string | undefined, after: string): Promise<boolean> {
  const temporary = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`)
  try {
    const mode = before === undefined ? 0o600 : (await stat(target)).mode & 0o777
    if (before !== undefined && (mode & 0o200) === 0) throw refused(`${target} is read-only. Nothing was changed.`)
    await writeNew(temporary, after, mode)
    if (before !== undefined) await keepOwner(temporary, target)
    if ((await currentText(target)) !== before) return false
    await rename(temporary, target)
    await syncFolder(dirname(target))
    return true
  } catch (error) {
    if (HostError.is(error)) throw error
    throw refused(`${target} cannot be written (${codeOf(error)}). Nothing was changed.`)
  } finally {
    await unlink(temporary).catch(() => {})
  }
}

async function writeNew(path: string, text: string, mode: number): Promise<void> {
  await unlink(path).catch(() => {})
  const handle = await open(path, 'wx', mode)
  try {
    await handle.writeFile(text)
    // The mode of open() is cut by the umask; the file keeps the one it had.
    await handle.chmod(mode)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The administrator edits another user's file without taking it from them. */
async function keepOwner(temporary: string, target: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await stat(target)
  const handle = await open(temporary, 'r+')
  try {
    await handle.chown(uid, gid)
  } finally {
    await handle.close()
  }
}

/** The rename itself survives a crash only when its folder has been written; not every system can. */
async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined
  try {
    handle = await open(folder, 'r')
    await handle.sync()
  } catch {
    // Folders cannot be opened on Windows.
  } finally {
    await handle?.close()
  }
}

/** Keeps two runs of the command from editing at once. Editors know nothing of it; for them there is the content check. */
async function lock(target: string): Promise<() => Promise<void>> {
  const path = join(dirname(target), `.${basename(target)}.lock`)
  const startedAtMs = performance.now()
  for (;;) {
    try {
      const handle = await open(path, 'wx', 0o600)
      await handle.writeFile(String(process.pid))
      await handle.close()
      return async () => unlink(path).catch(() => {})
    } catch (error) {
      if (codeOf(error) !== 'EEXIST')
        throw refused(`${target} cannot be written (${codeOf(error)}). Nothing was changed.`)
    }
    if (await lockIsAbandoned(path)) await unlink(path).catch(() => {})
    else if (performance.now() - startedAtMs > LOCK_WAIT_MS_MAX) {
      throw refused(`Another process edits ${target} (lock file ${path}). Nothing was changed.`)
    } else await delay(LOCK_POLL_MS)
  }
}

async function lockIsAbandoned(path: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(path)
    if (Date.now() - mtimeMs > LOCK_AGE_MS_MAX) return true
    const pid = Number(await readFile(path, 'utf8'))
    return Number.isSafeInteger(pid) && pid > 0 && !isAlive(pid)
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

function refused(message: string): HostError {
  return new HostError('CONFIG_PROBLEM', message)
}
