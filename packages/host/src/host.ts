// The composition root: the only file that may know every room.

import type { AccountSource } from './auth/index.ts'
import { HostError, type JsonObject, Scope, VERSION } from './base/index.ts'
import {
  type Aggregate,
  CATALOG_STORE_LIMITS,
  CatalogCache,
  type CatalogTool,
  NAME_CHARS_LIMIT,
  NAME_CHARS_MIN,
  type NamePolicy,
  type ToolLife,
} from './catalog/index.ts'
import type { RegistrationConflict, ResolvedRegistration, ServerDefinition } from './config/index.ts'
import type { ServerPort } from './connection/index.ts'
import type {
  AskCallback,
  ElicitationLimits,
  HostHandlers,
  QuestionAnswer,
  RequestHandlers,
  Reviewer,
  TrustPolicy,
} from './elicitation/index.ts'
import {
  EventBus,
  type HostEvent,
  type HostEventListener,
  type PendingQuestion,
  type PlannedServer,
  type QuestionOutcome,
  type ServerStatus,
} from './events/index.ts'
import type { ResourceClient } from './extensions/index.ts'
import { type HostConfiguration, HostRegistry, type ResolvedConfiguration } from './host-registry.ts'
import { HostTrust, type TrustOptions } from './host-trust.ts'
import {
  type Authorization,
  LaunchMemory,
  nodePlatform,
  type Platform,
  type ProtocolSettings,
  reapLeftovers,
} from './protocol/index.ts'
import {
  type Binding,
  type CallOutcome,
  type CaptureRequest,
  ConnectionSet,
  type Credentials,
  type DedicatedOptions,
  DedicatedPorts,
  type DirectCall,
  type EntitlementMinter,
  type Environment,
  localEnvironment,
  type ServerLife,
  type SetSettings,
} from './set/index.ts'
import { FileStore } from './store/index.ts'

/** What {@link createHost} takes. Only `definitions` is required. */
export interface HostOptions extends HostConfiguration {
  /** Default: name `convoke` and the version of this package. */
  readonly clientInfo?: { readonly name: string; readonly version: string; readonly title?: string }
  /** Where lease files are kept, so that the next start can end what this one may leave. Absent: nothing is noted and nothing reaped. */
  readonly stateDirectory?: string
  /** Where it is remembered which protocol era each server speaks, and what it listed last. Absent: in memory only. */
  readonly cacheDirectory?: string
  /** What servers listed, shared with other hosts of this process. Default: a cache of its own in `cacheDirectory`. */
  readonly catalogs?: CatalogCache
  /** Default: the real one. */
  readonly platform?: Platform
  /** `undici` costs less per call and more at the start: for long-lived hosts. Default `node`. */
  readonly http?: 'node' | 'undici'
  /** When queued messages are written: at the end of a tick, or of a turn of the event loop (for gateways). Default `tick`. */
  readonly writeBurst?: 'tick' | 'turn'
  readonly handlers?: HostHandlers
  /** Extensions of the protocol that this client speaks, by their names, each with its settings; told to every server. Default none. */
  readonly clientExtensions?: JsonObject
  /** Whether a person is asked for what servers ask. Default: yes, and nothing is accepted without. */
  readonly trust?: TrustPolicy
  /** In place of `trust` for single servers, by name. */
  readonly trustOf?: Readonly<Record<string, TrustPolicy>>
  /** Show forms with fields to a person although `trust` has full access without approvals. Default false. */
  readonly surfaceForms?: boolean
  /** May answer before a person is asked. */
  readonly reviewer?: Reviewer
  readonly questionLimits?: Partial<ElicitationLimits>
  /** Who the host is signed in as; its token goes to hosted servers of the source's origins alone. A new sign-in connects them anew. */
  readonly account?: AccountSource
  /**
   * How long a server's process may take to end by itself once its input has ended, in milliseconds; then SIGTERM to its group, and 2 s later SIGKILL.
   * Default 2,000. Many servers never notice the end of their input: a program that ends after a moment does better with less.
   */
  readonly closeGraceMs?: number
  /**
   * Which servers are started at once. `all`: as their definitions say, so that one with `startup: 'lazy-when-cached'` whose tools are known
   * from before sleeps until it is needed. A list: only those; the others when they are named. Default `all`.
   */
  readonly start?: 'all' | readonly string[]
  /**
   * How long the first bindings of a generation wait together for servers that are still starting, in milliseconds; 0: until each has
   * settled. Default 1,000.
   */
  readonly optionalStartupGraceMs?: number
  /** Where servers run, by the name that definitions use. Default: `local`, this machine. */
  readonly environments?: Readonly<Record<string, Environment>>
  /** Stored sign-ins, read before every plan: a server whose sign-in changed gets a new connection. */
  readonly credentials?: Credentials
  /** Makes the entitlements of calls of tools that ask for them. Absent: no call gets any. */
  readonly entitlements?: EntitlementMinter
  /** Longest flat name, in characters, 24 to 128. Default 48. */
  readonly nameCharsMax?: number
  /** Longest namespaced name in all, in characters, 24 to 128. Default 64. */
  readonly namespacedCharsMax?: number
  /** `none`: no namespace begins with `mcp__`. Default `mcp`. */
  readonly toolNamePrefix?: 'mcp' | 'none'
  /** Servers whose namespaces go without the prefix. Default none. */
  readonly unprefixedServers?: readonly string[]
  /** Credentials of an HTTP server, asked for when its connection is made; not used for a server with an `Authorization` header of its own. */
  readonly authorization?: (definition: ServerDefinition) => Authorization | undefined
  /** `none`: modern servers are not asked to tell about changes; for programs that end after a moment. Default `changes`. */
  readonly watch?: 'changes' | 'none'
  /** Hears everything from the first event on; `subscribe` begins after the starts have begun. */
  readonly onEvent?: HostEventListener
  /** Abort closes the host. */
  readonly signal?: AbortSignal
}

/** Every configured server, kept connected. */
export interface Host extends AsyncDisposable {
  /** One per definition, in their order. Looking starts nothing. */
  readonly statuses: readonly ServerStatus[]
  /** @returns a function that ends the subscription. */
  subscribe(listener: HostEventListener): () => void
  /**
   * Resolves when no server is starting or installing any more, or after `waitMs` (default: no limit). Naming servers needs them: those
   * that sleep are started, those that failed are started again if their time has come. Never rejects for what a server does.
   * @throws {HostError} `SERVER_UNKNOWN`; `CANCELLED` on abort, which stops the waiting only.
   */
  whenSettled(options?: {
    readonly waitMs?: number
    readonly servers?: readonly string[]
    readonly signal?: AbortSignal
  }): Promise<void>
  /**
   * The frozen view of now. It waits for servers that are still starting: for required ones until they have settled, for the others no
   * longer than the startup grace, once. Servers that failed are started again if their time has come; nobody waits for them.
   * @throws {HostError} `HOST_CLOSED`, `CANCELLED`
   */
  bind(request?: CaptureRequest): Promise<Binding>
  /**
   * Applies other definitions: what nothing changed about stays connected, what changed starts anew, what is gone ends, but not before the
   * last binding that holds it is disposed. Waits for no server. An abort before the new
   * generation is published leaves everything as it was.
   * @returns what was decided about each server.
   * @throws {HostError} `OPTIONS_INVALID`, `HOST_CLOSED`, `CANCELLED`
   */
  configure(definitions: readonly ServerDefinition[], options?: ConfigureOptions): Promise<readonly PlannedServer[]>
  /**
   * What `configure` would do, without doing it. Starts nothing. With `running` it tells what the change would do to a host whose servers are
   * those, each as well as it may be.
   * @throws {HostError} `OPTIONS_INVALID`, `HOST_CLOSED`, `CANCELLED`
   */
  plan(
    definitions: readonly ServerDefinition[],
    options?: ConfigureOptions & { readonly running?: readonly ServerDefinition[] },
  ): Promise<readonly PlannedServer[]>
  /**
   * The tools of all servers for whoever looks around; models work with bindings. What is known of a server that is starting or asleep is shown at
   * once, the others are waited for. A server that cannot be listed is named in `failures` and hides nobody.
   * @throws {HostError} `HOST_CLOSED`, `CANCELLED`
   */
  listTools(options?: { readonly signal?: AbortSignal }): Promise<Aggregate<CatalogTool>>
  /** Names that several sources of one tier wanted. */
  readonly conflicts: readonly RegistrationConflict[]
  /** Why a server, or a tool by its flat name, `SERVER/TOOL` or raw name, is as it is. Starts nothing. */
  explain(name: string): Explanation
  /** The part of `explain` that is about a server; undefined for one that is not configured. Starts nothing. */
  serverLife(server: string): ServerLife | undefined
  /** Resources of single servers; it stays valid while the configuration changes. */
  readonly resources: ResourceClient
  /** Looks again at everything but the definitions: what failed or whose sign-in changed starts anew. @throws {HostError} as `configure`. */
  refresh(options?: { readonly signal?: AbortSignal }): Promise<readonly PlannedServer[]>
  /** The next `configure` or `refresh` starts every server anew. */
  reconnectOnNextRefresh(): void
  /** Ends the starts that are under way. What is ready or asleep is left as it is. */
  cancelStarts(): void
  /**
   * Waits until the servers that their definitions call required have settled.
   * @throws {HostError} `REQUIRED_SERVERS_FAILED` names all that are not ready; `CANCELLED` on abort.
   */
  requireReady(options?: { readonly signal?: AbortSignal }): Promise<void>
  /**
   * Calls a tool by its server and raw name, without a binding: whether or not it is listed or shown to models, but only if the configuration
   * allows it. Every end is an outcome; never rejects.
   */
  callTool(call: DirectCall): Promise<CallOutcome>
  /** The questions of servers that wait for an answer, in the order in which they came. */
  questions(): readonly PendingQuestion[]
  /** How the last 256 questions ended, and why; the oldest first. */
  readonly questionOutcomes: readonly QuestionOutcome[]
  /**
   * Answers an open question.
   * @throws {HostError} `QUESTION_UNKNOWN`; `ANSWER_INVALID`: it does not fit, and the question stays open.
   */
  answer(id: string, response: QuestionAnswer): void
  /** `on`: every question is declined, also those that are open, until it is switched off. */
  declineQuestions(on: boolean): void
  /** Another trust from now on, for every connection there is; nothing is connected anew. What is left out has its default. */
  replaceTrust(trust: TrustOptions): void
  /** Would this `elicitation/create` be shown to a person now? For who passes questions on without the host. */
  leavesToPerson(server: string, params: JsonObject): boolean
  /** Answers to what a server asks, with the trust of this host put before them; for who passes questions on. */
  judge(server: string, handlers: Readonly<Record<string, AskCallback>>): RequestHandlers
  /** A connection of its own to one server, for a client whose capabilities it carries. @throws {HostError} */
  openDedicated(server: string, options: DedicatedOptions): Promise<ServerPort & AsyncDisposable>
  /**
   * Makes a new connection to the server and resolves when it has settled. The old one ends, but not before the last binding that holds
   * it is disposed.
   * @throws {HostError} `SERVER_UNKNOWN`, `HOST_CLOSED`
   */
  reconnect(server: string): Promise<ServerStatus>
  /** The same for every server, side by side. @throws {HostError} `HOST_CLOSED` */
  reconnectAll(): Promise<readonly ServerStatus[]>
  /** Ends everything: processes, sockets, timers. Idempotent. @throws {HostError} `INTERNAL` when a server could not be ended in time. */
  close(): Promise<void>
}

/** What comes with other definitions; registrations and authority that are left out stay as they are. */
export interface ConfigureOptions extends Omit<HostConfiguration, 'definitions'> {
  readonly signal?: AbortSignal
}

/** Everything that is known about a name. Empty for a name that nobody knows. */
export interface Explanation {
  /** The server of that name. */
  readonly server?: ServerLife
  /** Who declared it and who was shadowed; present where others than the configuration have a say. */
  readonly registration?: ResolvedRegistration
  /** The tools that the name may mean, at most 20. */
  readonly tools: readonly ToolLife[]
}

/** Flat names: clients put prefixes of their own before them. */
const NAME_CHARS_MAX = 48
const GRACE_MS = 1_000
const GRACE_MS_MAX = 600_000

/**
 * Makes a host and starts its servers side by side. Resolves at once, before any server has answered.
 *
 * @throws {HostError} `OPTIONS_INVALID` for two definitions of one name, an unknown name in `start`, or a number out of range.
 */
export async function createHost(options: HostOptions): Promise<Host> {
  const host = new RunningHost(options)
  await host.begin()
  return host
}

class RunningHost implements Host {
  readonly #options: HostOptions
  readonly #bus = new EventBus()
  readonly #scope = new Scope()
  readonly #registry: HostRegistry
  readonly #trust: HostTrust
  readonly #settings: SetSettings
  readonly #cache: CatalogCache
  readonly #set: ConnectionSet
  readonly #dedicated: DedicatedPorts

  constructor(options: HostOptions) {
    this.#options = options
    this.#registry = new HostRegistry(options)
    checkOptions(options, this.#registry.current.definitions)
    const protocol = protocolSettings(options)
    const emit = (event: HostEvent): void => this.#bus.emit(event)
    this.#trust = new HostTrust(
      { ...options, definitions: this.#registry.current.definitions },
      { platform: protocol.platform, emit },
    )
    const { platform } = protocol
    const { cacheDirectory } = options
    this.#cache = options.catalogs ?? createCatalogCache({ platform, ...present({ cacheDirectory }) })
    this.#settings = {
      protocol,
      client: this.#trust.introduction('').capabilities ?? {},
      cache: this.#cache,
      isCatalogKept: cacheDirectory !== undefined || options.catalogs !== undefined,
      cwd: workingDirectory(),
      authorization: (definition) => this.#trust.authorization(definition),
      credentials: options.credentials,
      account: (definition) => this.#trust.accountKey(definition),
      introduction: (server) => this.#trust.introduction(server),
      entitlements: options.entitlements,
      environments: new Map(Object.entries(options.environments ?? { local: localEnvironment(protocol.platform) })),
      start: options.start ?? 'all',
      graceMs: options.optionalStartupGraceMs ?? GRACE_MS,
      names: namePolicy(options),
      watch: options.watch ?? 'changes',
      emit,
    }
    this.#set = new ConnectionSet(this.#settings)
    this.#dedicated = new DedicatedPorts(this.#settings)
    if (options.onEvent !== undefined) this.#bus.subscribe(options.onEvent)
    this.#scope.defer(() => protocol.memory.flush())
    this.#scope.defer(() => this.#cache.flush())
    // Side by side: each of them has processes that may take their time.
    this.#scope.defer(async () => {
      const ends = await Promise.allSettled([this.#set.close(), this.#dedicated.close()])
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    })
    this.#scope.defer(() => this.#trust.close())
    this.#trust.onAccountReplaced(() => void this.refresh().catch(() => {})) // closed meanwhile: nothing is left to connect
  }

  /** Everything side by side; what a dead host left is ended beside it, not before. */
  async begin(): Promise<void> {
    const { signal } = this.#options
    if (signal !== undefined) {
      const onAbort = (): void => void this.close().catch(() => {})
      signal.addEventListener('abort', onAbort, { once: true })
      this.#scope.defer(() => signal.removeEventListener('abort', onAbort))
    }
    this.#reap()
    if (signal?.aborted === true) await this.close()
    else await this.#set.publish({ definitions: this.#registry.current.definitions })
  }

  get statuses(): readonly ServerStatus[] {
    return this.#set.statuses
  }

  subscribe(listener: HostEventListener): () => void {
    return this.#bus.subscribe(listener)
  }

  async whenSettled(
    options: { readonly waitMs?: number; readonly servers?: readonly string[]; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    await this.#set.whenSettled(options)
  }

  bind(request: CaptureRequest = {}): Promise<Binding> {
    return this.#set.bind(request)
  }

  async configure(
    definitions: readonly ServerDefinition[],
    { signal, ...others }: ConfigureOptions = {},
  ): Promise<readonly PlannedServer[]> {
    return this.#apply(this.#registry.resolve({ ...others, definitions }), signal)
  }

  async #apply(resolved: ResolvedConfiguration, signal: AbortSignal | undefined): Promise<readonly PlannedServer[]> {
    const { definitions } = resolved
    return this.#trust.during(definitions, async () => {
      const planned = await this.#set.publish({ definitions, signal })
      this.#registry.use(resolved)
      return planned
    })
  }

  async plan(
    definitions: readonly ServerDefinition[],
    { signal, running, ...others }: ConfigureOptions & { readonly running?: readonly ServerDefinition[] } = {},
  ): Promise<readonly PlannedServer[]> {
    const next = { definitions: this.#registry.resolve({ ...others, definitions }).definitions, signal }
    return running === undefined ? this.#set.preview(next) : this.#set.previewFrom(running, next)
  }

  async listTools(options: { readonly signal?: AbortSignal } = {}): Promise<Aggregate<CatalogTool>> {
    return this.#set.discoverTools(options)
  }

  get conflicts(): readonly RegistrationConflict[] {
    return this.#registry.current.catalog?.conflicts ?? []
  }

  explain(name: string): Explanation {
    const registration = this.#registry.registration(name)
    const life = this.serverLife(name)
    return {
      ...(life === undefined ? {} : { server: life }),
      ...(registration === undefined ? {} : { registration }),
      tools: this.#set.toolLives(name),
    }
  }

  serverLife(server: string): ServerLife | undefined {
    return this.#set.serverLife(server)
  }

  get resources(): ResourceClient {
    return this.#set.resources
  }

  refresh({ signal }: { readonly signal?: AbortSignal } = {}): Promise<readonly PlannedServer[]> {
    return this.#set.publish({ signal })
  }

  reconnectOnNextRefresh(): void {
    this.#set.reconnectOnNextPublication()
  }

  cancelStarts(): void {
    this.#set.cancelStarts()
  }

  requireReady({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    return this.#set.requireReady(signal)
  }

  callTool(call: DirectCall): Promise<CallOutcome> {
    return this.#set.callTool(call)
  }

  async openDedicated(server: string, options: DedicatedOptions): Promise<ServerPort & AsyncDisposable> {
    if (this.#scope.isClosed) throw new HostError('HOST_CLOSED', 'The host is closed')
    const connection = this.#set.connection(server)
    return this.#dedicated.open(connection, { ...options, handlers: this.judge(server, options.handlers ?? {}) })
  }

  reconnect(server: string): Promise<ServerStatus> {
    return this.#set.reconnect(server)
  }

  reconnectAll(): Promise<readonly ServerStatus[]> {
    return this.#set.reconnectAll()
  }

  questions(): readonly PendingQuestion[] {
    return this.#trust.elicitation.questions()
  }
  get questionOutcomes(): readonly QuestionOutcome[] {
    return this.#trust.elicitation.outcomes
  }
  answer(id: string, response: QuestionAnswer): void {
    this.#trust.elicitation.answer(id, response)
  }
  declineQuestions(on: boolean): void {
    this.#trust.elicitation.declineAll(on)
  }
  replaceTrust(trust: TrustOptions): void {
    this.#trust.replace(trust)
  }
  leavesToPerson(server: string, params: JsonObject): boolean {
    return this.#trust.elicitation.leavesToPerson(server, params)
  }
  judge(server: string, handlers: Readonly<Record<string, AskCallback>>): RequestHandlers {
    return this.#trust.elicitation.judge(server, handlers)
  }

  close(): Promise<void> {
    return this.#scope.close()
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #reap(): void {
    const { leaseDirectory, platform } = this.#settings.protocol
    if (leaseDirectory === undefined) return
    const reaping = reapLeftovers(leaseDirectory, platform).then(
      (reaped) => {
        for (const { pid, command } of reaped) this.#bus.emit({ kind: 'server.reaped', pid, command })
      },
      () => {}, // what cannot be read cannot be reaped; the next start tries again
    )
    this.#scope.defer(() => reaping)
  }
}

/** It may have been removed; only servers that are started in it cannot do without. */
function workingDirectory(): string {
  try {
    return process.cwd()
  } catch {
    return ''
  }
}

/** @throws {HostError} `OPTIONS_INVALID` */
function checkOptions(options: HostOptions, definitions: readonly ServerDefinition[]): void {
  const { start, nameCharsMax, namespacedCharsMax, optionalStartupGraceMs } = options
  const names = new Set(definitions.map(({ name }) => name))
  const stranger = start === undefined || start === 'all' ? undefined : start.find((name) => !names.has(name))
  if (stranger !== undefined) throw new HostError('OPTIONS_INVALID', `start names "${stranger}", which is not defined`)
  checkNumber('nameCharsMax', nameCharsMax, { from: NAME_CHARS_MIN, to: NAME_CHARS_LIMIT })
  checkNumber('namespacedCharsMax', namespacedCharsMax, { from: NAME_CHARS_MIN, to: NAME_CHARS_LIMIT })
  checkNumber('optionalStartupGraceMs', optionalStartupGraceMs, { from: 0, to: GRACE_MS_MAX })
}

/** @throws {HostError} `OPTIONS_INVALID` */
function checkNumber(
  name: string,
  value: number | undefined,
  { from, to }: { readonly from: number; readonly to: number },
): void {
  if (value === undefined || (Number.isInteger(value) && value >= from && value <= to)) return
  throw new HostError('OPTIONS_INVALID', `${name} is a whole number from ${from} to ${to}`)
}

/**
 * A cache of catalogs that several hosts of one process can share (`HostOptions.catalogs`): what one of them has listed, the others know.
 * @param options `cacheDirectory`: where catalogs outlive the process; absent: nowhere.
 */
export function createCatalogCache({
  cacheDirectory,
  platform = nodePlatform,
}: {
  readonly cacheDirectory?: string
  readonly platform?: Platform
} = {}): CatalogCache {
  if (cacheDirectory === undefined) return new CatalogCache({ platform })
  const directory = `${cacheDirectory}/catalogs`
  const limits = CATALOG_STORE_LIMITS
  return new CatalogCache({ platform, store: new FileStore({ platform, directory, limits, durability: 'cache' }) })
}

function present({ cacheDirectory }: { readonly cacheDirectory: string | undefined }): { cacheDirectory?: string } {
  return cacheDirectory === undefined ? {} : { cacheDirectory }
}

function namePolicy({
  nameCharsMax = NAME_CHARS_MAX,
  namespacedCharsMax,
  toolNamePrefix,
  unprefixedServers,
}: HostOptions): NamePolicy {
  return {
    nameCharsMax,
    ...(namespacedCharsMax === undefined ? {} : { namespacedCharsMax }),
    ...(toolNamePrefix === undefined ? {} : { toolNamePrefix }),
    ...(unprefixedServers === undefined ? {} : { unprefixedServers }),
  }
}

function protocolSettings(options: HostOptions): ProtocolSettings {
  const platform = options.platform ?? nodePlatform
  const { stateDirectory, cacheDirectory, clientInfo, http, writeBurst, closeGraceMs } = options
  return {
    platform,
    clientInfo: clientInfo ?? { name: 'convoke', version: VERSION },
    // Every connection is introduced by the trust of the host.
    capabilities: {},
    handlers: {},
    http: http ?? 'node',
    writeBurst: writeBurst ?? 'tick',
    leaseDirectory: stateDirectory === undefined ? undefined : `${stateDirectory}/leases`,
    closeGraceMs,
    memory: new LaunchMemory(platform, cacheDirectory),
  }
}
