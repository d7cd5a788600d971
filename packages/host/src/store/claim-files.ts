// The claims of a lock as files of one folder: each has a name of its own that is used once. A claim is there whole or not at all, and is never
// written again; a second file beside it is the heartbeat of its owner.
import { type ClaimOwner, claimText, judgeOwner, readClaim } from './claim.ts'
import { LockError } from './key-value-store.ts'
import type { StorePlatform } from './platform.ts'
import { distrustFile, prepareDirectory, removeLeftovers } from './trusted-files.ts'

/** A holder or contender says so often that it is still there, in milliseconds. */
const HEARTBEAT_MS = 5_000
/** An owner that cannot be looked at is gone when its heartbeat was watched standing still for so long, in milliseconds. */
const SILENCE_MS = 30_000
/** One look proves no longer a silence than this: a machine that slept has watched nobody. */
const WATCHED_MS_MAX = 100
const CLAIM_BYTES_MAX = 1_024
const CLAIM = /^(.+)\.([0-9a-z]+-[0-9a-f]{32})\.(claim|beat)$/

/** One claim of this process. */
export interface OwnClaim {
  readonly token: string
  /** Nobody has removed it. Never rejects. */
  isThere(): Promise<boolean>
  /** @throws {LockError} `failed` */
  takeBack(): Promise<void>
}

/** What one look at a folder shows of one name. */
export interface ClaimsSeen {
  /** The claim of the one who looks is there. */
  readonly isListed: boolean
  /** The tokens of all others that are not known to be dead. */
  readonly others: readonly string[]
}

interface Watched {
  readonly beat: string
  readonly silentMs: number
  readonly lookedAtMs: number
}

/** All claims below one directory. */
export class ClaimFiles {
  readonly directory: string
  readonly #platform: StorePlatform
  readonly #watched = new Map<string, Watched>()
  /** Claims of this process that could not be taken back when it let go. */
  readonly #unreleased = new Set<string>()
  #isSwept = false

  constructor(platform: StorePlatform, directory: string) {
    this.#platform = platform
    this.directory = directory
  }

  /** Makes a claim for all to see. @throws {LockError} `failed`, and what the disk throws. */
  async announce(name: string, token: string): Promise<OwnClaim> {
    const { pid, processes, files } = this.#platform
    const because = await prepareDirectory(this.#platform, this.directory)
    if (because !== undefined) throw this.failed(`it is not used: ${because}`)
    await this.#sweep()
    const file = fileOf(name, token)
    const owner: ClaimOwner = { pid, startedAt: processes.facts(pid)?.startedAt ?? '', place: processes.place() }
    try {
      await files.writeAtomic(this.#path(file), claimText(owner), { durable: false, onlyNew: true })
    } catch (error) {
      await this.#remove(file).catch(() => {}) // it may be there although something failed
      throw error
    }
    const heart = this.#beat(beatOf(file))
    return {
      token,
      isThere: () =>
        files.inspect(this.#path(file)).then(
          (facts) => facts !== undefined,
          () => false,
        ),
      takeBack: async () => {
        await heart.stop()
        await this.#takeBack(file)
      },
    }
  }

  /** Looks at all claims of a name. Those of the dead are removed on the way. @throws {LockError} `failed`, and what the disk throws. */
  async look(name: string, mine: string | undefined): Promise<ClaimsSeen> {
    const names = await this.#platform.files.list(this.directory)
    const there = new Set(names)
    const others: string[] = []
    for (const file of names) {
      const [, of, token, kind] = CLAIM.exec(file) ?? []
      if (of !== name || token === undefined || token === mine) continue
      const isAlone = kind === 'beat' && !there.has(fileOf(name, token))
      if (isAlone) await this.#platform.files.remove(this.#path(file))
      else if (kind === 'claim' && (await this.#counts(file))) others.push(token)
      else if (kind === 'claim') await this.#remove(file)
    }
    this.#forgetOthersThan(there, name)
    return { isListed: mine !== undefined && there.has(fileOf(name, mine)), others }
  }

  /** The process that made a claim, if its number means something here. */
  async pidOf(name: string, token: string): Promise<number | undefined> {
    const text = await this.#text(fileOf(name, token)).catch(() => undefined)
    const owner = text === undefined ? undefined : readClaim(text)
    return owner?.place === this.#platform.processes.place() ? owner.pid : undefined
  }

  failed(what: string, cause?: unknown): LockError {
    return new LockError('failed', `${this.directory}: ${what}`, cause === undefined ? {} : { cause })
  }

  #forgetOthersThan(there: ReadonlySet<string>, name: string): void {
    for (const file of this.#watched.keys())
      if (file.startsWith(`${name}.`) && !there.has(file)) this.#watched.delete(file)
  }

  async #counts(file: string): Promise<boolean> {
    const platform = this.#platform
    if (this.#unreleased.has(file)) return false
    const facts = await platform.files.inspect(this.#path(file))
    if (facts === undefined) return false
    const because = distrustFile(platform, facts)
    if (because !== undefined) throw this.failed(`${file} is not used: ${because}`)
    const text = await this.#text(file)
    if (text === undefined) return false
    const owner = readClaim(text)
    const place = platform.processes.place()
    const isHere = owner !== undefined && owner.place === place
    const verdict = judgeOwner(owner, {
      place,
      answers: isHere && platform.kill(owner.pid, 0, 'process'),
      facts: isHere ? platform.processes.facts(owner.pid) : undefined,
    })
    return verdict === 'unseen' ? this.#isHeard(file) : verdict === 'alive'
  }

  /** Time is counted here, look by look: neither the clock of another machine nor a sleep of this one matters. */
  async #isHeard(file: string): Promise<boolean> {
    const beat = (await this.#text(beatOf(file))) ?? ''
    const lookedAtMs = this.#platform.now()
    const before = this.#watched.get(file)
    const silentMs =
      before?.beat === beat ? before.silentMs + Math.min(lookedAtMs - before.lookedAtMs, WATCHED_MS_MAX) : 0
    this.#watched.set(file, { beat, silentMs, lookedAtMs })
    return silentMs < SILENCE_MS
  }

  async #text(file: string): Promise<string | undefined> {
    try {
      return (await this.#platform.files.read(this.#path(file), CLAIM_BYTES_MAX)).toString('utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return undefined
      if (code === 'EFBIG') return ''
      throw error
    }
  }

  /** The claim itself is never written again: it would come back after somebody had taken it for abandoned. */
  #beat(file: string): { stop(): Promise<void> } {
    const { files, setTimer, clearTimer } = this.#platform
    let count = 0
    let writing = Promise.resolve()
    let timer: object | undefined
    let isStopped = false
    const write = (): void => {
      writing = files
        .writeAtomic(this.#path(file), String(++count), { durable: false })
        .catch(() => {}) // the next one may reach the disk
        .then(() => {
          if (!isStopped) wait()
        })
    }
    const wait = (): void => {
      timer = setTimer(write, HEARTBEAT_MS, 'background')
    }
    wait()
    return {
      stop: () => {
        isStopped = true
        clearTimer(timer)
        return writing
      },
    }
  }

  async #takeBack(file: string): Promise<void> {
    try {
      await this.#remove(file)
    } catch (error) {
      this.#unreleased.add(file)
      throw this.failed(`${file} cannot be taken back (${(error as NodeJS.ErrnoException).code})`, error)
    }
  }

  /** The claim first: a heartbeat without one means nothing. */
  async #remove(file: string): Promise<void> {
    const { files } = this.#platform
    await files.remove(this.#path(file))
    this.#unreleased.delete(file)
    this.#watched.delete(file)
    await files.remove(this.#path(beatOf(file)))
  }

  async #sweep(): Promise<void> {
    if (this.#isSwept) return
    this.#isSwept = true
    await removeLeftovers(this.#platform, this.directory, await this.#platform.files.list(this.directory))
  }

  #path(file: string): string {
    return `${this.directory}/${file}`
  }
}

function fileOf(name: string, token: string): string {
  return `${name}.${token}.claim`
}

function beatOf(claim: string): string {
  return claim.replace(/claim$/, 'beat')
}
