// The composition root: with its parts in `host-*.ts` the only place that may know every room.

import type { SignedIn, SignedOut, SignInChange, SignInOptions, SignInStatus, SignIns } from './auth/index.ts'
import { HostError, type JsonObject, Lane, Scope } from './base/index.ts'
import type { Aggregate, CatalogCache, CatalogTool } from './catalog/index.ts'
import type { RegistrationConflict, ServerDefinition } from './config/index.ts'
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
import type { ConfigureOptions, Explanation, Host } from './host-interface.ts'
import {
  checkOptions,
  createCatalogCache,
  GRACE_MS,
  type HostOptions,
  namePolicy,
  protocolSettings,
  workingDirectory,
} from './host-options.ts'
import { HostRegistry, type ResolvedConfiguration } from './host-registry.ts'
import { makeSignIns } from './host-sign-ins.ts'
import type { HostThreads } from './host-threads.ts'
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
import type { Thread, ThreadOptions } from './turn/index.ts'

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
  /** Loaded with the first thread. */
  #threads: HostThreads | undefined
  #loadingThreads: Promise<HostThreads> | undefined
  /** One change of what is configured or contributed after the other. */
  readonly #configuring = new Lane()
  #lookedAtMs = Number.NEGATIVE_INFINITY
  /** A look that is under way; whoever comes meanwhile waits for it. */
  #looking: Promise<void> | undefined

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
    this.#scope.defer(() => this.#threads?.close())
    this.#account = new AccountFollower(options.account, () => this.refresh())
    this.#trust.onAccountReplaced(() => {
      this.#account.replaced()
      this.#threads?.accountReplaced()
    })
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
    // Who cannot be installed is told at once.
    if (this.#options.extensions !== undefined) await this.#loadThreads()
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
    const leave = await this.#configuring.enter(signal)
    try {
      return await this.#apply(this.#registry.resolve({ ...others, definitions }), signal)
    } finally {
      leave()
    }
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

  async thread(options: ThreadOptions = {}): Promise<Thread> {
    return (await this.#loadThreads()).open(options)
  }

  get extensionCounts(): Readonly<Record<string, number>> {
    return this.#threads?.counts ?? {}
  }

  #loadThreads(): Promise<HostThreads> {
    this.#loadingThreads ??= this.#makeThreads()
    return this.#loadingThreads
  }

  async #makeThreads(): Promise<HostThreads> {
    const { HostThreads } = await import('./host-threads.ts')
    const { platform } = this.#settings.protocol
    this.#threads = new HostThreads({
      extensions: this.#options.extensions,
      platform,
      resources: this.#set.resources,
      lane: this.#configuring,
      bind: (request) => this.bind(request),
      publish: async (contributed, signal) => {
        const { configuration } = this.#registry.current
        await this.#apply(this.#registry.resolve(configuration, contributed), signal)
      },
      reconnectOnNextRefresh: () => this.reconnectOnNextRefresh(),
      definition: (server) => this.definitions.find(({ name }) => name === server),
      account: () => this.#trust.account,
      trust: (server) => this.#trust.of(server),
      emit: (event) => this.#bus.emit(event),
    })
    if (this.#scope.isClosed) await this.#threads.close()
    return this.#threads
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
    if (this.#looking !== undefined) return this.#looking
    const nowMs = this.#settings.protocol.platform.now()
    if (this.#settings.credentials !== this.#signIns || nowMs - this.#lookedAtMs < LOOK_MS_MIN) return undefined
    this.#lookedAtMs = nowMs
    const waiting = new Set(this.statuses.filter(({ state }) => state === 'needs-auth').map(({ name }) => name))
    const watched = this.#signIns.watched(this.definitions, waiting)
    if (watched.length === 0) return undefined
    const looking = this.#followStored(watched).finally(() => {
      if (this.#looking === looking) this.#looking = undefined
    })
    this.#looking = looking
    return looking
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
