// Who started which process, kept where the next host can read it: a host that is killed cannot end its children, so its successor does.
//
// Every child carries CONVOKE_LEASE=HOST-NUMBER in its environment, and so do its own children. Each host process keeps one small file with its process
// number, its start time, HOST (random), and its children. On Linux the variable alone finds every leftover, whatever session it has moved to; elsewhere the
// recorded children and their process groups are what is found.
import type { Platform } from './platform.ts'

/** The name of the variable. */
export const LEASE_VARIABLE = 'CONVOKE_LEASE'
/** The name of a lease file. */
export const LEASE_FILE: RegExp = /^host-\d+-[0-9a-f]{32}\.json$/
/** A longer lease file is not read. */
export const LEASE_FILE_BYTES_MAX: number = 256 * 1024
const CHILDREN_MAX = 1_024

/** What a lease file holds. */
export interface LeaseRecord {
  version: 1
  /** Where process numbers can be compared: boot and process namespace. */
  place: string
  /** The random part of every lease of this host. */
  host: string
  pid: number
  startedAt: string
  children: readonly LeasedChild[]
}

/** A process that its host has started; `command` without arguments that may hold secrets. */
export interface LeasedChild {
  lease: string
  pid: number
  startedAt: string
  command: string
}

/** The lease of one child. */
export interface Lease {
  /** The value of the variable. */
  readonly value: string
  /** The process has started. */
  started(pid: number | undefined): void
  /** The process and all that it left are gone. Resolves when the file says so. */
  ended(): Promise<void>
}

/** The leases that this process has given, in one directory or in none. */
export class LeaseBook {
  readonly #platform: Platform
  readonly #directory: string | undefined
  readonly #host: string
  readonly #children = new Map<string, LeasedChild | undefined>()
  #count = 0
  #writing: Promise<void> = Promise.resolve()
  #dirty = false

  constructor(platform: Platform, directory: string | undefined) {
    this.#platform = platform
    this.#directory = directory
    this.#host = platform.randomBytes(16).toString('hex')
  }

  /** Resolves when the file names this host, so that a child started now can be found. */
  async open(command: string): Promise<Lease> {
    const value = `${this.#host}-${++this.#count}`
    const first = this.#children.size === 0
    this.#children.set(value, undefined)
    if (first) void this.#save()
    await this.#writing
    return {
      value,
      started: (pid) => {
        if (pid === undefined || !this.#children.has(value)) return
        const startedAt = this.#platform.processes.facts(pid)?.startedAt ?? ''
        this.#children.set(value, { lease: value, pid, startedAt, command })
        void this.#save()
      },
      ended: () => {
        if (!this.#children.delete(value)) return this.#writing
        return this.#save()
      },
    }
  }

  /** Changes that come while one is being written are written together. */
  #save(): Promise<void> {
    if (this.#directory === undefined) return this.#writing
    if (!this.#dirty) {
      this.#dirty = true
      this.#writing = this.#writing.then(() => this.#write(this.#directory as string))
    }
    return this.#writing
  }

  async #write(directory: string): Promise<void> {
    this.#dirty = false
    const { files, pid, processes } = this.#platform
    const path = `${directory}/host-${pid}-${this.#host}.json`
    try {
      if (this.#children.size === 0) return await files.remove(path)
      await files.makeDirectory(directory)
      if (!(await isOurs(this.#platform, directory, 'directory'))) return
      const record: LeaseRecord = {
        version: 1,
        place: processes.place(),
        host: this.#host,
        pid,
        startedAt: processes.facts(pid)?.startedAt ?? '',
        children: [...this.#children.values()].filter((one) => one !== undefined).slice(-CHILDREN_MAX),
      }
      await files.writeAtomic(path, JSON.stringify(record), { durable: false })
    } catch {
      // A lease is insurance against our own sudden death: a full or read-only disk must not stop a server from starting.
    }
  }
}

/** A file or directory that only this user can have put there. */
export async function isOurs(platform: Platform, path: string, kind: 'file' | 'directory'): Promise<boolean> {
  const facts = await platform.files.inspect(path)
  if (facts === undefined || facts.kind !== kind) return false
  return facts.ownerId === platform.userId && (platform.userId === -1 || (facts.mode & 0o022) === 0)
}

const books = new WeakMap<Platform, Map<string, LeaseBook>>()

/** The book of this process for a directory; without a directory nothing is written. */
export function leaseBook(platform: Platform, directory: string | undefined): LeaseBook {
  let known = books.get(platform)
  if (known === undefined) books.set(platform, (known = new Map()))
  const key = directory ?? ''
  let book = known.get(key)
  if (book === undefined) known.set(key, (book = new LeaseBook(platform, directory)))
  return book
}

/** The record in a lease file; undefined when it is none. */
export function parseLease(text: string): LeaseRecord | undefined {
  let value: Partial<LeaseRecord> | null
  try {
    value = JSON.parse(text) as Partial<LeaseRecord> | null
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || value.version !== 1) return undefined
  const { place, host, pid, startedAt, children } = value
  if (typeof place !== 'string' || typeof startedAt !== 'string' || !isPid(pid) || !Array.isArray(children))
    return undefined
  if (typeof host !== 'string' || !/^[0-9a-f]{32}$/.test(host)) return undefined
  return { version: 1, place, host, pid, startedAt, children: children.filter(isChild) }
}

function isChild(value: unknown): value is LeasedChild {
  if (typeof value !== 'object' || value === null) return false
  const { lease, pid, startedAt, command } = value as Partial<LeasedChild>
  return typeof lease === 'string' && isPid(pid) && typeof startedAt === 'string' && typeof command === 'string'
}

/** Never 0 or 1, and never negative: to `kill` those are groups and everybody. */
function isPid(pid: unknown): pid is number {
  return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 1
}
