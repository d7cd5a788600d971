// Files that exist only in memory, and survive the host that wrote them.
import type { FileFacts, FilesPort } from '@convoke/wire'

interface Entry {
  readonly kind: 'file' | 'directory'
  readonly data: Buffer
  readonly mode: number
  readonly modifiedAtMs: number
}

/** What the files need to know of their world. */
export interface MemoryFilesOptions {
  readonly userId: number
  nowMs(): number
  /** A few turns of the world pass before an operation is done. Rejects when the disk fails. */
  delay(operation: string): Promise<void>
}

/** A small disk. */
export class MemoryFiles implements FilesPort {
  readonly #options: MemoryFilesOptions
  readonly #entries = new Map<string, Entry>()

  constructor(options: MemoryFilesOptions) {
    this.#options = options
  }

  /** Every file there is. */
  get paths(): readonly string[] {
    return [...this.#entries].filter(([, { kind }]) => kind === 'file').map(([path]) => path)
  }

  /** At once, as something outside would do it. */
  put(path: string, text: string): void {
    this.#entries.set(path, this.#entry('file', Buffer.from(text), 0o600))
  }

  /** At once, as something outside would do it. */
  take(path: string): void {
    this.#entries.delete(path)
  }

  async read(path: string, bytesMax: number): Promise<Buffer> {
    await this.#options.delay('read')
    const entry = this.#entries.get(path)
    if (entry === undefined) throw fault('ENOENT', path)
    if (entry.kind === 'directory') throw fault('EISDIR', path)
    if (entry.data.length > bytesMax) throw fault('EFBIG', path)
    return Buffer.from(entry.data)
  }

  async writeAtomic(
    path: string,
    data: string | Uint8Array,
    options: { mode?: number; onlyNew?: boolean } = {},
  ): Promise<void> {
    await this.#options.delay('write')
    const parent = parentOf(path)
    if (this.#entries.get(parent)?.kind !== 'directory') throw fault('ENOENT', path)
    if (options.onlyNew === true && this.#entries.has(path)) throw fault('EEXIST', path)
    this.#entries.set(path, this.#entry('file', Buffer.from(data as Uint8Array), options.mode ?? 0o600))
  }

  async list(path: string): Promise<readonly string[]> {
    await this.#options.delay('list')
    const beginning = path.endsWith('/') ? path : `${path}/`
    return [...this.#entries.keys()]
      .filter((other) => other.startsWith(beginning) && !other.slice(beginning.length).includes('/'))
      .map((other) => other.slice(beginning.length))
  }

  isFile(path: string): boolean {
    return this.#entries.get(path)?.kind === 'file'
  }

  async inspect(path: string): Promise<FileFacts | undefined> {
    await this.#options.delay('inspect')
    const entry = this.#entries.get(path)
    if (entry === undefined) return undefined
    const { kind, data, mode, modifiedAtMs } = entry
    return { kind, bytes: data.length, ownerId: this.#options.userId, mode, modifiedAtMs }
  }

  async makeDirectory(path: string, mode = 0o700): Promise<void> {
    await this.#options.delay('mkdir')
    for (let at = path; at !== '' && at !== '/' && !this.#entries.has(at); at = parentOf(at))
      this.#entries.set(at, this.#entry('directory', Buffer.alloc(0), mode))
  }

  async remove(path: string): Promise<void> {
    await this.#options.delay('remove')
    this.#entries.delete(path)
  }

  #entry(kind: Entry['kind'], data: Buffer, mode: number): Entry {
    return { kind, data, mode, modifiedAtMs: this.#options.nowMs() }
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

function fault(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code })
}
