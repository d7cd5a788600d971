// One host in one world, and everything that its callers hold and wait for. Steps act on it, checks look at it.
import {
  type Account,
  type AccountChange,
  type AccountSource,
  createHost,
  type Host,
  type HostEvent,
  type HostOptions,
  type ServerDefinition,
  type ServerPort,
} from '@convoke/host'
import { type HeldBinding, type HeldCall, holds, type Waiting } from './held.ts'
import type { Invariant } from './invariants.ts'
import type { Step } from './steps.ts'
import { drain } from './timeline.ts'
import { definitionOf, HOSTED_ORIGIN, programKey, type WantedServer, wantedOf, wantedServer } from './wanted.ts'
import { World } from './world.ts'

/** A promise of the host that was broken. */
export interface Violation {
  readonly invariant: Invariant
  readonly message: string
}

/** A dedicated connection, open or being opened. */
export interface Dedicated {
  readonly program: string
  port: (ServerPort & AsyncDisposable) | undefined
  isOver: boolean
}

const STATE_DIRECTORY = '/state'
const CACHE_DIRECTORY = '/cache'
/** A close that takes longer is one that does not end. */
export const CLOSE_MS_MAX = 20_000
/** In which a process that is ended has ended, in ms. */
export const ENDING_MS_MAX = 12_000
const SETTLED_CALLS_KEPT = 4_000

export class Life {
  readonly world: World
  readonly violations: Violation[] = []
  readonly bindings: HeldBinding[] = []
  /** The configurations of bindings that are being taken: they hold connections already. */
  readonly capturing: Set<{ readonly wanted: ReadonlyMap<string, WantedServer> }> = new Set()
  readonly dedicated: Set<Dedicated> = new Set()
  readonly waiting: Set<Waiting> = new Set()
  readonly calls: Map<number, HeldCall> = new Map()
  /** What the host was asked for last. */
  wanted: Map<string, WantedServer> = new Map()
  /** Names that have been published in this life. */
  readonly seenNames: Set<string> = new Set()
  /** Content of a view by its revision, and the other way round, for one life of the host. */
  readonly revisions: Map<string, string> = new Map()
  /** The last revision that was told of a server's catalog. */
  readonly toldRevisions: Map<string, string> = new Map()
  /** When a binding or a dedicated connection last held a connection to a program. */
  readonly heldAtMs: Map<string, number> = new Map()
  /** Whether a person may be asked. */
  trust: { approvals: 'ask' | 'never'; fullAccess: boolean } = { approvals: 'ask', fullAccess: false }
  /** Who the host is signed in as; undefined: nobody. */
  account: Account | undefined = { id: 'one', grant: 'grant-1' }
  configuring = 0
  isClosed = true
  bindingCount = 0
  callCount = 0
  eventCount = 0
  readonly #accounts: AccountSource
  readonly #accountListeners = new Set<(change: AccountChange) => void>()
  #host: Host | undefined
  #onEvent: (event: HostEvent) => void = () => {}

  constructor(seed: number) {
    this.world = new World(seed)
    this.#accounts = {
      origins: [HOSTED_ORIGIN],
      current: () => this.account,
      token: (account) => (account.grant === this.account?.grant ? account.grant : undefined),
      refresh: () => Promise.resolve(false),
      onChange: (listener) => {
        this.#accountListeners.add(listener)
        return () => void this.#accountListeners.delete(listener)
      },
    }
    for (const name of ['s0', 's1', 'h0']) this.wanted.set(name, wantedServer(name))
    this.world.ledger.onArrival = (token, arrival) => {
      const call = this.calls.get(token)
      if (call !== undefined) this.#arrived(call, arrival.instance)
    }
    this.world.onFault = (invariant, message) => this.violate(invariant, message)
    this.world.processes.onSpawn = (program) => this.#spawned(program.key)
  }

  get host(): Host {
    if (this.#host === undefined) throw new Error('no host yet')
    return this.#host
  }

  /** Everything besides the published generation that may hold a connection to a program. */
  holders(program: string): number {
    const held = [...this.bindings, ...this.capturing].filter((one) => holds(one, program)).length
    return held + [...this.dedicated].filter((one) => one.program === program).length
  }

  /** What it says that it has published. */
  get published(): ReadonlyMap<string, WantedServer> {
    return new Map(this.host.definitions.map((definition) => [definition.name, wantedOf(definition)]))
  }

  get definitions(): readonly ServerDefinition[] {
    return [...this.wanted.values()].map(definitionOf)
  }

  /** Tells checks what the host tells. */
  listen(listener: (event: HostEvent) => void): void {
    this.#onEvent = listener
  }

  violate(invariant: Invariant, message: string): void {
    this.world.note(`BROKEN ${invariant}: ${message}`)
    this.violations.push({ invariant, message })
  }

  /** From now on steps and checks see another host: one that lies. */
  disguise(as: (host: Host) => Host): void {
    this.#host = as(this.host)
  }

  /** Somebody signs in, or out. */
  signIn(account: Account | undefined): void {
    this.account = account
    for (const listener of [...this.#accountListeners]) listener('replaced')
  }

  /** Makes a host over the files that are there. */
  async begin(): Promise<void> {
    for (const memory of [this.seenNames, this.revisions, this.toldRevisions, this.heldAtMs]) memory.clear()
    const options: HostOptions = {
      definitions: this.definitions,
      platform: this.world.platform(),
      stateDirectory: STATE_DIRECTORY,
      cacheDirectory: CACHE_DIRECTORY,
      onEvent: (event) => this.hear(event),
      handlers: { elicit: () => this.#answerQuestion() },
      trust: this.trust,
      account: this.#accounts,
    }
    let host: Host | undefined
    void createHost(options).then(
      (made) => {
        host = made
      },
      (error: unknown) => this.violate('a host can be made', (error as Error).stack ?? ''),
    )
    await this.world.until(() => host !== undefined || this.violations.length > 0, CLOSE_MS_MAX)
    if (host === undefined) return this.violate('a host can be made', 'createHost did not settle')
    this.#host = host
    this.isClosed = false
  }

  /** Closes it, and says what is wrong with the way it ended. */
  async end(): Promise<void> {
    let outcome: { readonly error?: unknown } | undefined
    this.world.note('close')
    void this.host.close().then(
      () => (outcome = {}),
      (error: unknown) => (outcome = { error }),
    )
    await this.world.until(() => outcome !== undefined, CLOSE_MS_MAX)
    this.isClosed = true
    const told = outcome as { readonly error?: unknown } | undefined
    if (told === undefined) this.violate('a close ends', `close() took more than ${CLOSE_MS_MAX} ms`)
    else if ('error' in told) this.violate('a close ends', `close() failed: ${String(told.error)}`)
    await drain()
  }

  /** Somebody waits for this, and not for ever. */
  track<T>(what: string, promise: Promise<T>, options: TrackOptions<T>): void {
    const { nowMs } = this.world.timeline
    const waiting: Waiting = { what, sinceAtMs: nowMs, dueAtMs: nowMs + options.msMax }
    this.waiting.add(waiting)
    void promise.then(
      (value) => {
        this.waiting.delete(waiting)
        options.done?.(value)
      },
      (error: unknown) => {
        this.waiting.delete(waiting)
        options.failed?.(error)
      },
    )
  }

  /** A call is over; what was said about it is remembered for a while. */
  settled(call: HeldCall): void {
    const { size } = this.calls
    if (size <= SETTLED_CALLS_KEPT) return
    for (const [token, old] of this.calls) {
      if (old.told === 'nothing yet' || old === call) continue
      this.calls.delete(token)
      this.world.ledger.forget(token)
      return
    }
  }

  /** The server that a number of a step chooses; undefined when there is none. */
  serverOf({ a }: Step, among: ReadonlyMap<string, WantedServer> = this.published): WantedServer | undefined {
    const names = [...among.values()]
    return names[a % Math.max(1, names.length)]
  }

  /** An old process may hold a port or a lock that the next one needs. */
  #spawned(key: string): void {
    const { processes, timeline } = this.world
    const old = processes.servers.filter(({ program, endingAtMs }) => program.key === key && endingAtMs !== undefined)
    const heldMs = timeline.nowMs - (this.heldAtMs.get(key) ?? Number.NEGATIVE_INFINITY)
    const isHeld = this.dedicated.size > 0 || this.holders(key) > 0 || heldMs < ENDING_MS_MAX
    if (old.length > 0 && !isHeld)
      this.violate('an old process is gone before the next one starts', `${key} starts beside pid ${old[0]?.number}`)
  }

  /** The host tells something. */
  hear(event: HostEvent): void {
    this.eventCount += 1
    this.#onEvent(event)
  }

  async #answerQuestion(): Promise<{ action: string; content?: object }> {
    const { random, timeline } = this.world
    if (this.trust.approvals === 'never')
      this.violate('nobody is asked when the policy says never', 'a person is asked')
    const accepts = random.chance(60)
    // A person may take longer than the call would be allowed to be silent.
    await new Promise<void>((resolve) => timeline.later(0, random.chance(10) ? 9_000 : 300, resolve))
    return accepts ? { action: 'accept', content: {} } : { action: 'decline' }
  }

  #arrived(call: HeldCall, instance: string): void {
    const what = `${call.server}/${call.tool} #${call.token}`
    if (call.told === 'did not run')
      this.violate('a settled call was told truthfully', `${what} was said not to have run, and arrives at ${instance}`)
    if (call.instance !== undefined && call.instance !== instance)
      this.violate('no call is rerouted', `${what} was advertised by ${call.instance} and arrives at ${instance}`)
    if (!call.isAllowed)
      this.violate('the configured filter holds for calls', `${what} is not allowed and arrives at ${instance}`)
    const { arrivals } = this.world.ledger.of(call.token)
    const max = call.isIdempotent ? 2 : 1
    if (arrivals.length > max)
      this.violate('no call is run twice', `${what} arrived ${arrivals.length} times, at most ${max} are allowed`)
  }
}

/** How long a caller may have to wait, and what happens then. */
export interface TrackOptions<T> {
  readonly msMax: number
  done?(value: T): void
  failed?(error: unknown): void
}

export { programKey }
