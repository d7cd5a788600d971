// What the stores need of the world outside. The platform of the host is one of these.

/** What is known of a path without following a link; part of the platform's files. */
export interface StoredFileFacts {
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  readonly bytes: number
  readonly ownerId: number
  readonly mode: number
  readonly modifiedAtMs: number
}

/** What a store that keeps files, or a lock among processes, needs of the platform. Times are in milliseconds. */
export interface StorePlatform {
  /** Monotonic. */
  now(): number
  /** Since the epoch. */
  dateMs(): number
  /** A `background` timer does not keep the process alive. */
  setTimer(callback: () => void, ms: number, kind?: 'background'): object
  clearTimer(timer: object | undefined): void
  readonly os: string
  readonly pid: number
  /** -1 where there is no such number. */
  readonly userId: number
  randomBytes(count: number): Buffer
  readonly processes: {
    /** Undefined: there is no such process, or nothing can be learned of it. */
    facts(pid: number): { readonly startedAt: string; readonly zombie: boolean } | undefined
    /** Numbers of processes can be compared only if they come from the same place. */
    place(): string
  }
  /** With signal 0: is there such a process? False only if there is none. */
  kill(pid: number, signal: 0, to: 'process'): boolean
  readonly files: {
    read(path: string, bytesMax: number): Promise<Buffer>
    writeAtomic(
      path: string,
      data: string | Uint8Array,
      options?: { mode?: number; durable?: boolean; onlyNew?: boolean },
    ): Promise<void>
    list(path: string): Promise<readonly string[]>
    inspect(path: string): Promise<StoredFileFacts | undefined>
    makeDirectory(path: string, mode?: number): Promise<void>
    remove(path: string): Promise<void>
  }
}
