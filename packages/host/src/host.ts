// The composition root: with its parts in `host-*.ts` the only place that may know every room.

import type { SignedIn, SignedOut, SignInChange, SignInOptions, SignInStatus, SignIns } from './auth/index.ts'
import { HostError, type JsonObject, Scope } from './base/index.ts'
import type { Aggregate, CatalogCache, CatalogTool, ToolLife } from './catalog/index.ts'
import type { RegistrationConflict, ResolvedRegistration, ServerDefinition } from './config/index.ts'
import type { ServerPort } from './connection/index.ts'
import type { AskCallback, QuestionAnswer, RequestHandlers } from './elicitation/index.ts'
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
import { AccountFollower } from './host-account.ts'
import {
  checkOptions,
  createCatalogCache,
  GRACE_MS,
  type HostOptions,
  namePolicy,
  protocolSettings,
  workingDirectory,
} from './host-options.ts'
import { type HostConfiguration, HostRegistry, type ResolvedConfiguration } from './host-registry.ts'
import { makeSignIns } from './host-sign-ins.ts'
import { HostTrust, type TrustOptions } from './host-trust.ts'
import { reapLeftovers } from './protocol/index.ts'
import {
  type Binding,
  type CallOutcome,
  type CaptureRequest,
  ConnectionSet,
  type DedicatedOptions,
  DedicatedPorts,
  type DirectCall,
  localEnvironment,
  type ServerLife,
  type SetSettings,
} from './set/index.ts'

/** Every configured server, kept connected. */
export interface Host extends AsyncDisposable {
  /** What is published now: the same list until the next generation. */
  readonly definitions: readonly ServerDefinition[]
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
   * Lets a person sign in to a server: finds its authorization server, shows the page, and keeps what comes of it. Then the server is connected anew; that is
   * not waited for.
   * @throws {HostError} `SERVER_UNKNOWN`, `SIGN_IN_UNSUPPORTED`, `SIGN_IN_FAILED`, `SIGN_IN_TIMEOUT`, `CREDENTIALS_UNAVAILABLE`, `HOST_CLOSED`; `CANCELLED` on
   * abort, which leaves everything as it was.
   */
  signIn(server: string, options?: SignInOptions): Promise<SignedIn>
  /**
   * Deletes the sign-in of a server here, tells the authorization server (RFC 7009, 10 s at most), and connects the server anew without it.
   * @throws {HostError} `SERVER_UNKNOWN`, `HOST_CLOSED`; `CREDENTIALS_UNAVAILABLE`: it is still there; `CANCELLED` on abort before that.
   */
  signOut(server: string, options?: { readonly signal?: AbortSignal }): Promise<SignedOut>
  /**
   * Whose credentials each server sees, in their order; never a token. Starts no server and renews nothing.
   * @param options `servers`: only these. `probe`: servers that nobody is signed in to are asked whether they want that, side by side, 5 s at most. Default false.
   * @throws {HostError} `SERVER_UNKNOWN`
   */
  signInStatuses(options?: {
    readonly servers?: readonly string[]
    readonly probe?: boolean
    readonly signal?: AbortSignal
  }): Promise<readonly SignInStatus[]>
  /**
   * Where a new sign-in would be kept, and why. It is tried: a keyring that may be used is given an item and loses it again, which takes 2 s at most.
   * @throws {HostError} `CREDENTIALS_UNAVAILABLE`: nowhere.
   */
  signInStore(): Promise<SignedIn['store']>
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

/** Time between two looks at what other programs have done to sign-ins, in milliseconds. */
const LOOK_MS_MIN = 1_000

class RunningHost implements Host {
  readonly #options: HostOptions
  readonly #bus = new EventBus()
  readonly #scope = new Scope()
  readonly #registry: HostRegistry
  readonly #trust: HostTrust
  readonly #signIns: SignIns
  readonly #account: AccountFollower
  readonly #settings: SetSettings
  readonly #cache: CatalogCache
  readonly #set: ConnectionSet
  readonly #dedicated: DedicatedPorts
  #lookedAtMs = Number.NEGATIVE_INFINITY

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
    this.#signIns = makeSignIns({
      settings: options.signIns,
      stateDirectory: options.stateDirectory,
      clientName: protocol.clientInfo.name,
      platform,
      hasAccount: (definition) => this.#trust.accountKey(definition) !== undefined,
      onChange: (change) => this.#signInChanged(change),
    })
    this.#cache = options.catalogs ?? createCatalogCache({ platform, cacheDirectory })
    this.#settings = {
      protocol,
      client: this.#trust.introduction('').capabilities ?? {},
      cache: this.#cache,
      isCatalogKept: cacheDirectory !== undefined || options.catalogs !== undefined,
      cwd: workingDirectory(),
      authorization: (definition) =>
        this.#trust.authorization(definition, (signedIn) => this.#signIns.authorizationFor(signedIn)),
      credentials: options.credentials ?? (options.authorization === undefined ? this.#signIns : undefined),
      credentialsAre: options.credentials === undefined ? 'own' : 'program',
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
    this.#scope.defer(() => this.#signIns.close())
    this.#scope.defer(() => this.#trust.close())
    this.#account = new AccountFollower(options.account, () => this.refresh())
    this.#trust.onAccountReplaced(() => this.#account.replaced())
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

  get definitions(): readonly ServerDefinition[] {
    return this.#set.definitions
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
    await (options.servers === undefined ? this.#account.settled() : this.#lookForSignIns())
    await this.#set.whenSettled(options)
  }

  async bind(request: CaptureRequest = {}): Promise<Binding> {
    if (this.#scope.isClosed) throw new HostError('HOST_CLOSED', 'The host is closed')
    const looking = this.#lookForSignIns()
    if (looking !== undefined) await looking
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

  async callTool(call: DirectCall): Promise<CallOutcome> {
    await (call.wait === 'ready' ? this.#lookForSignIns() : this.#account.settled())
    return this.#set.callTool(call)
  }

  async openDedicated(server: string, options: DedicatedOptions): Promise<ServerPort & AsyncDisposable> {
    if (this.#scope.isClosed) throw new HostError('HOST_CLOSED', 'The host is closed')
    const connection = this.#set.connection(server)
    return this.#dedicated.open(connection, { ...options, handlers: this.judge(server, options.handlers ?? {}) })
  }

  async signIn(server: string, options: SignInOptions = {}): Promise<SignedIn> {
    const signedIn = await this.#signIns.signIn(this.#definition(server), options)
    await this.refresh()
    return signedIn
  }

  async signOut(server: string, options: { readonly signal?: AbortSignal } = {}): Promise<SignedOut> {
    const signedOut = await this.#signIns.signOut(this.#definition(server), options)
    await this.refresh()
    return signedOut
  }

  async signInStatuses({
    servers,
    ...options
  }: {
    readonly servers?: readonly string[]
    readonly probe?: boolean
    readonly signal?: AbortSignal
  } = {}): Promise<readonly SignInStatus[]> {
    const definitions = servers === undefined ? this.definitions : servers.map((name) => this.#definition(name))
    return Promise.all(definitions.map((definition) => this.#signIns.status(definition, options)))
  }

  signInStore(): Promise<SignedIn['store']> {
    return this.#signIns.destination()
  }

  /**
   * Somebody may have signed in or out with another program. At most one look a second, and none where no sign-in matters. Never rejects.
   * @returns undefined: there is nothing to look at, and nobody waits.
   */
  #lookForSignIns(): Promise<void> | undefined {
    const account = this.#account.settled()
    return account === undefined ? this.#lookAtStored() : account.then(() => this.#lookAtStored())
  }

  #lookAtStored(): Promise<void> | undefined {
    const nowMs = this.#settings.protocol.platform.now()
    if (this.#settings.credentials !== this.#signIns || nowMs - this.#lookedAtMs < LOOK_MS_MIN) return undefined
    this.#lookedAtMs = nowMs
    const waiting = new Set(this.statuses.filter(({ state }) => state === 'needs-auth').map(({ name }) => name))
    const watched = this.#signIns.watched(this.definitions, waiting)
    return watched.length === 0 ? undefined : this.#followStored(watched)
  }

  async #followStored(watched: readonly ServerDefinition[]): Promise<void> {
    if (!(await this.#signIns.haveChanged(watched))) return
    await this.refresh().catch(() => {}) // closed meanwhile: whoever asked is told
  }

  /** @throws {HostError} `HOST_CLOSED`, `SERVER_UNKNOWN` */
  #definition(server: string): ServerDefinition {
    if (this.#scope.isClosed) throw new HostError('HOST_CLOSED', 'The host is closed')
    const definition = this.definitions.find(({ name }) => name === server)
    if (definition !== undefined) return definition
    throw new HostError('SERVER_UNKNOWN', `There is no server "${server}"`, { details: { server } })
  }

  #signInChanged(change: SignInChange): void {
    this.#bus.emit({ kind: 'sign-in.changed', ...change })
    // Somebody else may have signed in: a connection never goes on as another one than it began as. One that is only starting fails by itself, and whoever
    // waits for that must not find a new one in its place that nobody has started.
    const isReady = this.statuses.some(({ name, state }) => name === change.server && state === 'ready')
    if (change.change === 'ended' && isReady) void this.refresh().catch(() => {}) // closed meanwhile: nothing is left to connect
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
