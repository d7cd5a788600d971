// Reads one configuration file from the disk, within limits. Never throws for what it finds.

import type * as Fs from 'node:fs'

/**
 * An `import` would read every export of it, and load streams and a line editor with them; so would its promises. A file of a few
 * kilobytes is read at once.
 */
const fs = process.getBuiltinModule('node:fs') as typeof Fs

/** Largest configuration file, in bytes. */
export const FILE_BYTES_MAX: number = 4 * 1024 * 1024

/** What was found at a path. */
export type FileOutcome =
  | { readonly kind: 'text'; readonly text: string; readonly notes: readonly FileNote[] }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly code: FileFaultCode; readonly reason: string }

/** Something about a file that is told, and does not keep it from being used. */
export interface FileNote {
  readonly code: 'CONFIG_FILE_PERMISSIONS' | 'CONFIG_FILE_ENCODING'
  readonly reason: string
}

type FileFaultCode =
  | 'CONFIG_FILE_UNREADABLE'
  | 'CONFIG_FILE_TOO_LARGE'
  | 'CONFIG_FILE_NOT_REGULAR'
  | 'CONFIG_FILE_ENCODING'

/** Reads the file at `path`; symbolic links are followed. Pipes and devices are refused without being waited for. */
export async function readConfigFile(path: string): Promise<FileOutcome> {
  let file: number
  try {
    file = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  } catch (error) {
    return openFault(error)
  }
  try {
    return readOpened(file)
  } catch (error) {
    return { kind: 'unusable', code: 'CONFIG_FILE_UNREADABLE', reason: `cannot be read (${codeOf(error)})` }
  } finally {
    fs.closeSync(file)
  }
}

function openFault(error: unknown): FileOutcome {
  const code = codeOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' }
  if (code === 'ENXIO') return { kind: 'unusable', code: 'CONFIG_FILE_NOT_REGULAR', reason: 'is not a regular file' }
  return { kind: 'unusable', code: 'CONFIG_FILE_UNREADABLE', reason: `cannot be read (${code})` }
}

function readOpened(file: number): FileOutcome {
  const stats = fs.fstatSync(file)
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? 'is a folder' : 'is not a regular file'
    return { kind: 'unusable', code: 'CONFIG_FILE_NOT_REGULAR', reason: `${what}, not a file` }
  }
  const bytes = readAtMost(file, FILE_BYTES_MAX)
  if (bytes === undefined) {
    const reason = `is larger than ${FILE_BYTES_MAX} bytes`
    return { kind: 'unusable', code: 'CONFIG_FILE_TOO_LARGE', reason }
  }
  if (/^(\xff\xfe|\xfe\xff)/.test(bytes.toString('latin1', 0, 2))) {
    return { kind: 'unusable', code: 'CONFIG_FILE_ENCODING', reason: 'is UTF-16; save it as UTF-8' }
  }
  const notes: FileNote[] = []
  if (process.platform !== 'win32' && (stats.mode & 0o002) !== 0) {
    const reason = 'can be changed by every user of this machine, who then decide what is started; run chmod o-w on it'
    notes.push({ code: 'CONFIG_FILE_PERMISSIONS', reason })
  }
  return { kind: 'text', ...decode(bytes, notes) }
}

function decode(bytes: Buffer, notes: FileNote[]): { text: string; notes: readonly FileNote[] } {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  try {
    return { text: decoder.decode(bytes), notes }
  } catch {
    // One wrong byte in a comment must not hide the servers; where it stands in a value, that value shows it.
    const reason = 'is not UTF-8 throughout; characters that could not be read are replaced'
    return { text: bytes.toString('utf8'), notes: [...notes, { code: 'CONFIG_FILE_ENCODING', reason }] }
  }
}

/** The file may grow while it is read, so the limit is on what is read and not on what `stat` said. */
function readAtMost(file: number, bytesMax: number): Buffer | undefined {
  const chunks: Buffer[] = []
  let total = 0
  for (;;) {
    const chunk = Buffer.allocUnsafe(65_536)
    const bytesRead = fs.readSync(file, chunk, 0, chunk.length, null)
    if (bytesRead === 0) return Buffer.concat(chunks, total)
    total += bytesRead
    if (total > bytesMax) return undefined
    chunks.push(chunk.subarray(0, bytesRead))
  }
}

/** The short name of a system error (`EACCES`), never its message, which can hold more than the path. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error'
}
