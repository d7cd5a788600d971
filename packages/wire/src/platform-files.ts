// The files of the platform port: small files, read whole within a limit, written so that a reader sees the old or the new content and nothing between.
import type * as Fs from 'node:fs'
import type * as Path from 'node:path'

/** What is known of a path without following a link. */
export interface FileFacts {
  kind: 'file' | 'directory' | 'link' | 'other'
  bytes: number
  /** The numeric user id of the owner; -1 where there is none. */
  ownerId: number
  /** Permission bits, as in 0o600. */
  mode: number
  modifiedAtMs: number
}

/** Small files on the local disk. */
export interface FilesPort {
  /** The whole content. @throws a Node error: `ENOENT`, `ELOOP` for a link, `EFBIG` over `bytesMax` … */
  read(path: string, bytesMax: number): Promise<Buffer>
  /**
   * Writes a new file beside `path` and renames it over `path`. Mode 0600 unless told otherwise.
   * It survives a power cut unless `durable` is false, which saves two waits for the disk. With `onlyNew` it fails with `EEXIST` when
   * something is there already, also when several processes try at once.
   */
  writeAtomic(
    path: string,
    data: string | Uint8Array,
    options?: { mode?: number; durable?: boolean; onlyNew?: boolean },
  ): Promise<void>
  /** The names in a directory; none if it does not exist. */
  list(path: string): Promise<readonly string[]>
  /** At once: a file, or a link to one, is there. For looking a program up. */
  isFile(path: string): boolean
  /** Undefined when nothing is there. */
  inspect(path: string): Promise<FileFacts | undefined>
  /** With its parents; mode 0700 unless told otherwise. */
  makeDirectory(path: string, mode?: number): Promise<void>
  /** Removes one file; nothing happens if it is not there. */
  remove(path: string): Promise<void>
}

const fs = (): typeof Fs => process.getBuiltinModule('node:fs') as typeof Fs
const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException | null)?.code === 'ENOENT'
let written = 0
/** Another process may have had the same number before, and left a file behind. */
const run = (): number => Math.floor(performance.timeOrigin * 1_000) % 1e12

/** The real files. */
export const nodeFiles: FilesPort = {
  async read(path, bytesMax) {
    const { constants, promises } = fs()
    const handle = await promises.open(
      path,
      constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
    )
    try {
      const { size } = await handle.stat()
      if (size > bytesMax) throw tooBig(path, bytesMax)
      const buffer = Buffer.allocUnsafe(bytesMax + 1)
      let length = 0
      for (;;) {
        const { bytesRead } = await handle.read(buffer, length, buffer.length - length)
        if (bytesRead === 0) return Buffer.from(buffer.subarray(0, length))
        length += bytesRead
        if (length > bytesMax) throw tooBig(path, bytesMax)
      }
    } finally {
      await handle.close()
    }
  },
  async writeAtomic(path, data, { mode = 0o600, durable = true, onlyNew = false } = {}) {
    const { promises } = fs()
    const temporary = `${path}.${process.pid}.${run() + ++written}.tmp`
    const handle = await promises.open(temporary, 'wx', mode)
    try {
      try {
        await handle.writeFile(data)
        if (durable) await handle.sync()
      } finally {
        await handle.close()
      }
      if (onlyNew) await promises.link(temporary, path).then(() => promises.rm(temporary, { force: true }))
      else await promises.rename(temporary, path)
    } catch (error) {
      await promises.rm(temporary, { force: true })
      throw error
    }
    if (durable) await syncDirectory((process.getBuiltinModule('node:path') as typeof Path).dirname(path))
  },
  async list(path) {
    try {
      return await fs().promises.readdir(path)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  },
  isFile: (path) => fs().statSync(path, { throwIfNoEntry: false })?.isFile() === true,
  async inspect(path) {
    try {
      const facts = await fs().promises.lstat(path)
      return {
        kind: facts.isFile() ? 'file' : facts.isDirectory() ? 'directory' : facts.isSymbolicLink() ? 'link' : 'other',
        bytes: facts.size,
        ownerId: process.platform === 'win32' ? -1 : facts.uid,
        mode: facts.mode & 0o777,
        modifiedAtMs: facts.mtimeMs,
      }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  },
  makeDirectory: (path, mode = 0o700) => makeDirectory(path, mode),
  async remove(path) {
    await fs().promises.rm(path, { force: true })
  },
}

/** Node's own recursive way never ends where a folder is missing that cannot be made, as below /proc. */
async function makeDirectory(path: string, mode: number): Promise<void> {
  const { promises } = fs()
  try {
    await promises.mkdir(path, { mode })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    const parent = (process.getBuiltinModule('node:path') as typeof Path).dirname(path)
    if (code !== 'ENOENT' || parent === path) throw error
    await makeDirectory(parent, mode)
    await promises.mkdir(path, { mode }).catch((again: unknown) => {
      if ((again as NodeJS.ErrnoException).code !== 'EEXIST') throw again
    })
  }
}

function tooBig(path: string, bytesMax: number): Error {
  return Object.assign(new Error(`${path} has more than ${bytesMax} bytes`), { code: 'EFBIG' })
}

/** A rename is durable only when its directory is. Not every system can do this; then the rename alone has to do. */
async function syncDirectory(path: string): Promise<void> {
  try {
    const handle = await fs().promises.open(path, 'r')
    await handle.sync().finally(() => handle.close())
  } catch {
    /* Windows, some network file systems */
  }
}
