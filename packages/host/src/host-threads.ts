// The threads of a host: what they share, and what each of them brings. Part of the composition root.
import { HostError, type Lane } from './base/index.ts'
import { type RegistrationAction, type ServerDefinition, sameRegistration } from './config/index.ts'
import type { TrustPolicy } from './elicitation/index.ts'
import type { HostEvent } from './events/index.ts'
import {
  ContributorCalls,
  type Extension,
  type ExtensionMetrics,
  ExtensionRegistry,
  ExtensionStore,
  type ResourceClient,
} from './extensions/index.ts'
import type { Platform } from './protocol/index.ts'
import type { Binding, CaptureRequest } from './set/index.ts'
import { LiveThread, type Thread, type ThreadOptions, type ThreadRuntime } from './turn/index.ts'

/** What the threads of a host need of it. */
export interface HostThreadsInit {
  readonly extensions: readonly Extension[] | undefined
  readonly platform: Platform
  readonly resources: ResourceClient
  /** One change of what is published after the other. */
  readonly lane: Lane
  bind(request: CaptureRequest): Promise<Binding>
  /** Publishes what threads contribute besides the configuration. */
  publish(contributed: readonly RegistrationAction[], signal: AbortSignal | undefined): Promise<void>
  reconnectOnNextRefresh(): void
  definition(server: string): ServerDefinition | undefined
  account(): object | undefined
  trust(server: string): TrustPolicy
  emit(event: HostEvent): void
}

/** Threads of one host at a time. */
const THREADS_MAX = 10_000
/** Different things that extensions may count. */
const COUNTS_MAX = 1_024

/** The threads of one host. */
export class HostThreads {
  readonly #init: HostThreadsInit
  readonly #threads = new Map<string, LiveThread>()
  /** Ids of threads that are beginning. */
  readonly #beginning = new Set<string>()
  readonly #contributions = new Map<string, readonly RegistrationAction[]>()
  /** Servers of the threads that contribute them, by name. */
  readonly #owners = new Map<string, Set<string>>()
  readonly #counts = new Map<string, number>()
  readonly #runtime: ThreadRuntime
  #isClosed = false

  /** @throws {HostError} `OPTIONS_INVALID` for extensions that cannot be installed. */
  constructor(init: HostThreadsInit) {
    this.#init = init
    const { platform, resources, emit } = init
    const metrics: ExtensionMetrics = { count: (name, by = 1) => this.#count(name, by) }
    const calls = new ContributorCalls({
      registry: registryOf(init.extensions ?? []),
      onFault: ({ kind: contributor, ...fault }) => emit({ kind: 'extension.failed', contributor, ...fault }),
      setTimer: (callback, ms) => platform.setTimer(callback, ms),
      clearTimer: (timer) => platform.clearTimer(timer),
    })
    const randomId = (): string => platform.randomBytes(16).toString('hex')
    this.#runtime = {
      calls,
      session: new ExtensionStore('session', randomId()),
      resources,
      metrics,
      authKey: () => init.account(),
      bind: (request) => init.bind(request),
      contribute: (thread, registrations, options) => this.#contribute(thread, registrations, options),
      withdraw: (thread) => this.#withdraw(thread),
      sees: (thread, server) => this.#owners.get(server)?.has(thread) ?? true,
      definition: (server) => init.definition(server),
      trust: (server) => init.trust(server),
      emit,
      now: () => platform.now(),
      randomId,
    }
  }

  /** What extensions have counted, by name; at most 1,024 names. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts)
  }

  /** @throws {HostError} `HOST_CLOSED`; `OPTIONS_INVALID` for an id that is in use, or more than 10,000 threads. */
  async open(options: ThreadOptions = {}): Promise<Thread> {
    if (this.#isClosed) throw new HostError('HOST_CLOSED', 'The host is closed')
    const id = options.id ?? this.#runtime.randomId()
    if (this.#threads.has(id) || this.#beginning.has(id))
      throw new HostError('OPTIONS_INVALID', `There is a thread "${id}" already`)
    if (this.#threads.size + this.#beginning.size >= THREADS_MAX)
      throw new HostError('OPTIONS_INVALID', `There are ${THREADS_MAX} threads already`)
    this.#beginning.add(id)
    try {
      const thread = await LiveThread.start({
        options: { ...options, id },
        runtime: this.#runtime,
        onClose: (closed) => void (this.#threads.get(id) === closed && this.#threads.delete(id)),
      })
      this.#threads.set(id, thread)
      if (this.#isClosed) {
        await thread.close()
        throw new HostError('HOST_CLOSED', 'The host is closed')
      }
      return thread
    } finally {
      this.#beginning.delete(id)
    }
  }

  /** Somebody else is signed in: what was shown to the old account goes, before anybody asks. */
  accountReplaced(): void {
    for (const thread of this.#threads.values()) thread.accountReplaced()
  }

  /** Ends all threads. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#threads.values()].map((thread) => thread.close()))
  }

  async #contribute(
    thread: string,
    registrations: readonly RegistrationAction[],
    { reconnect, signal }: { readonly reconnect: boolean; readonly signal?: AbortSignal | undefined },
  ): Promise<void> {
    if (!reconnect && sameActions(this.#contributions.get(thread) ?? [], registrations)) return
    const leave = await this.#init.lane.enter(signal)
    const before = this.#contributions.get(thread)
    try {
      this.#set(thread, registrations)
      if (reconnect) this.#init.reconnectOnNextRefresh()
      await this.#init.publish(this.#merged(), signal)
    } catch (error) {
      this.#set(thread, before ?? [])
      throw error
    } finally {
      leave()
    }
  }

  async #withdraw(thread: string): Promise<void> {
    if (!this.#contributions.has(thread)) return
    const leave = await this.#init.lane.enter()
    try {
      this.#set(thread, [])
      if (!this.#isClosed) await this.#init.publish(this.#merged(), undefined)
    } catch {
      // The host is closed: nothing is left to publish.
    } finally {
      leave()
    }
  }

  #set(thread: string, registrations: readonly RegistrationAction[]): void {
    if (registrations.length === 0) this.#contributions.delete(thread)
    else this.#contributions.set(thread, registrations)
    this.#owners.clear()
    for (const [owner, actions] of this.#contributions)
      for (const action of actions) {
        if (action.kind !== 'declare') continue
        const { name } = action.definition
        this.#owners.set(name, (this.#owners.get(name) ?? new Set()).add(owner))
      }
  }

  /** What several threads say alike is said once. */
  #merged(): readonly RegistrationAction[] {
    const said: RegistrationAction[] = []
    for (const actions of this.#contributions.values())
      for (const action of actions) if (!said.some((one) => sameAction(one, action))) said.push(action)
    return said
  }

  #count(name: string, by: number): void {
    const known = this.#counts.get(name)
    if (known === undefined && this.#counts.size >= COUNTS_MAX) return
    this.#counts.set(name, (known ?? 0) + by)
  }
}

function registryOf(extensions: readonly Extension[]): ExtensionRegistry {
  try {
    return ExtensionRegistry.of(extensions)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new HostError('OPTIONS_INVALID', `The extensions cannot be installed: ${why}`, { cause })
  }
}

function sameActions(one: readonly RegistrationAction[], other: readonly RegistrationAction[]): boolean {
  return (
    one.length === other.length &&
    one.every((action, index) => {
      const next = other[index]
      return next !== undefined && sameAction(action, next)
    })
  )
}

function sameAction(one: RegistrationAction, other: RegistrationAction): boolean {
  if (one === other) return true
  if (one.source.kind !== other.source.kind) return false
  if (one.kind === 'remove') return other.kind === 'remove' && one.name === other.name
  return other.kind === 'declare' && sameRegistration(one.definition, other.definition)
}
