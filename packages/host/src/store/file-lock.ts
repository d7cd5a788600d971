// A lock among processes that share a folder, and nothing else. Why nobody can hold it twice: docs/decisions/0085-a-lock-of-claims.md.
import { HostError, untilAborted } from '../base/index.ts'
import { planClaim } from './claim.ts'
import { ClaimFiles, type ClaimsSeen, type OwnClaim } from './claim-files.ts'
import { LOCK_WAIT_MS, LockError, type LockOptions, StoreError, type StoreLock } from './key-value-store.ts'
import { LocalLocks } from './local-locks.ts'
import type { StorePlatform } from './platform.ts'

/** What a {@link FileLock} is made of. */
export interface FileLockOptions {
  readonly platform: StorePlatform
  /** Made with mode 0700 when something is first locked. */
  readonly directory: string
}

const POLL_MS_MIN = 20
const POLL_MS_SPREAD = 31
const ARRIVAL_CHARS = 10

/** One try to get a lock. */
interface Contest {
  readonly name: string
  readonly waitMs: number
  readonly endsAtMs: number
  readonly signal: AbortSignal | undefined
}

/** Lets one holder of each name in at a time, among all processes that use the directory. Whoever died with it holds it no more. */
export class FileLock {
  readonly #platform: StorePlatform
  readonly #claims: ClaimFiles
  /** Those who wait in this process meet the others one at a time. */
  readonly #local: LocalLocks

  constructor({ platform, directory }: FileLockOptions) {
    this.#platform = platform
    this.#claims = new ClaimFiles(platform, directory)
    this.#local = new LocalLocks(platform)
  }

  /**
   * @param name Letters, digits, `-`, `_` and `.`; at most 160 characters.
   * @throws {LockError} `busy`, `failed`
   * @throws {HostError} `CANCELLED`
   */
  async acquire(name: string, { waitMs = LOCK_WAIT_MS, signal }: LockOptions = {}): Promise<StoreLock> {
    const endsAtMs = this.#platform.now() + waitMs
    const local = await this.#local.take(name, { waitMs, ...(signal === undefined ? {} : { signal }) })
    try {
      return heldLock(await this.#contend({ name, waitMs, endsAtMs, signal }), local)
    } catch (error) {
      await local[Symbol.asyncDispose]()
      if (error instanceof StoreError || error instanceof HostError) throw error
      const { code = 'unknown' } = error as NodeJS.ErrnoException
      throw this.#claims.failed(`"${name}" cannot be locked (${code})`, error)
    }
  }

  /** @returns the claim that holds. */
  async #contend(contest: Contest): Promise<OwnClaim> {
    const { name } = contest
    const arrival = this.#platform.dateMs().toString(36).padStart(ARRIVAL_CHARS, '0')
    let seen: ClaimsSeen = { isListed: false, others: [] }
    let mine: OwnClaim | undefined
    try {
      for (;;) {
        const step = planClaim({ arrival, announced: mine?.token, ...seen })
        if (step === 'hold' && mine !== undefined) return mine
        if (step === 'withdraw' || step === 'announce') {
          const former = mine
          mine = undefined
          await former?.takeBack()
        }
        if (step === 'announce') mine = await this.#claims.announce(name, this.#token(arrival))
        else await this.#pause(contest, seen)
        seen = await this.#claims.look(name, mine?.token)
      }
    } catch (error) {
      await mine?.takeBack().catch(() => {})
      throw error
    }
  }

  /** Never the same twice: who removes the claim of a dead process cannot meet a living one's. */
  #token(arrival: string): string {
    return `${arrival}-${this.#platform.randomBytes(16).toString('hex')}`
  }

  /** @throws {LockError} `busy` @throws {HostError} `CANCELLED` */
  async #pause({ name, waitMs, endsAtMs, signal }: Contest, { others }: ClaimsSeen): Promise<void> {
    const platform = this.#platform
    const leftMs = endsAtMs - platform.now()
    if (leftMs <= 0) {
      const pid = others[0] === undefined ? undefined : await this.#claims.pidOf(name, others[0])
      const who = pid === undefined ? 'others' : `process ${pid}`
      throw new LockError('busy', `${this.#claims.directory}: "${name}" was held by ${who} for more than ${waitMs} ms`)
    }
    const pollMs = POLL_MS_MIN + ((platform.randomBytes(1)[0] ?? 0) % POLL_MS_SPREAD)
    let timer: object | undefined
    const passed = new Promise<void>((resolve) => {
      timer = platform.setTimer(resolve, Math.min(pollMs, leftMs))
    })
    await untilAborted(passed, signal).finally(() => platform.clearTimer(timer))
  }
}

function heldLock(claim: OwnClaim, local: StoreLock): StoreLock {
  let release: Promise<void> | undefined
  return {
    isHeld: async () => release === undefined && (await claim.isThere()) && release === undefined,
    [Symbol.asyncDispose]: () => (release ??= claim.takeBack().finally(() => local[Symbol.asyncDispose]())),
  }
}
