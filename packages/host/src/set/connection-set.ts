// MANY servers: which connections there are, which generation of them is published, and who still holds an older one.
import { HostError, Lane, type Lease, Shared, untilAborted } from '../base/index.ts'
import {
  type Aggregate,
  type CatalogTool,
  OutputSchemas,
  type ServerCatalog,
  type ToolLife,
  toolLife,
  toolView,
} from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { ServerConnection } from '../connection/index.ts'
import { type HostEvent, type PlannedServer, PublicationGate, type ServerStatus } from '../events/index.ts'
import type { ResourceClient } from '../extensions/index.ts'
import type { Binding, CallOutcome } from './binding.ts'
import { type CaptureRequest, type CaptureTools, capture } from './capture.ts'
import { type Connections, carryOut, type PlannedConnection } from './carry-out.ts'
import { callTool, type DirectCall } from './direct-call.ts'
import { type DiscoveryOptions, discoverTools } from './discovery.ts'
import { type ServerLife, serverLife, type ToldFailure } from './explain.ts'
import { Generation, type Member } from './generation.ts'
import { LiveBinding } from './live-binding.ts'
import type { LiveServer, LiveServers } from './live-servers.ts'
import { type Observed, observeDefinitions } from './observation.ts'
import { observeConnection } from './observe.ts'
import { type PlanPolicy, planConnection } from './plan.ts'
import { plannedChange, plannedServers } from './plan-report.ts'
import type { CallServices } from './prepared-call.ts'
import { requireReady } from './required.ts'
import { LiveResourceClient } from './resource-client.ts'
import type { SetSettings } from './settings.ts'
import { settled } from './settled.ts'
import { reportStartup } from './startup.ts'
import { ViewMemory } from './view-memory.ts'

/** Longest a close may take before it is reported as failed, in milliseconds. A process is killed well before. */
const CLOSE_TIMEOUT_MS = 15_000

/** What the next generation is made of. */
export interface PublishRequest extends Partial<PlanPolicy> {
  /** Default: those of the published generation. */
  readonly definitions?: readonly ServerDefinition[] | undefined
  /** An abort before the generation is published leaves everything as it was. */
  readonly signal?: AbortSignal | undefined
}

/** The published connections. */
export class ConnectionSet implements LiveServers {
  readonly #settings: SetSettings
  readonly #connections: Connections = new Map()
  /** One publication after the other. */
  readonly #lane = new Lane()
  readonly #services: CallServices
  readonly #capturing: CaptureTools
  readonly #reports = new Set<Promise<void>>()
  /** Catalogs of connections that older bindings may still hold: what happens there is nothing that the published servers do. */
  readonly #silenced = new WeakSet<ServerCatalog>()
  /** The last failure of each published server. */
  readonly #failures = new Map<string, ToldFailure>()
  #resources: ResourceClient | undefined
  /** When the connection that a server had before is over, by its name. */
  readonly #leaving = new Map<string, Promise<void>>()
  #generation: Shared<Generation> | undefined
  #published: Lease<Generation> | undefined
  #definitions: readonly ServerDefinition[] = []
  #generations = 0
  #reconnectsAll = false
  #closing: Promise<void> | undefined

  constructor(settings: SetSettings) {
    this.#settings = settings
    const { entitlements, protocol } = settings
    this.#services = { outputs: new OutputSchemas(), platform: protocol.platform, entitlements }
    this.#capturing = {
      settings,
      services: this.#services,
      live: this,
      views: new ViewMemory(),
      isSilenced: (catalog) => this.#silenced.has(catalog),
    }
  }

  /** One per definition, in their order. Looking starts nothing. */
  get statuses(): readonly ServerStatus[] {
    return this.#members.map(({ connection }) => connection.value.status)
  }

  /** Those of the published generation; the same list as long as it is published. */
  get definitions(): readonly ServerDefinition[] {
    return this.#published?.value.definitions ?? []
  }

  /** Number of the published generation; 0 before the first. */
  get generation(): number {
    return this.#published?.value.number ?? 0
  }

  /** The next publication starts everything anew. */
  reconnectOnNextPublication(): void {
    this.#reconnectsAll = true
  }

  /**
   * Makes the next generation and publishes it: what was held back is told, the old generation retires, the new connections start. Waits
   * for no server.
   * @throws {HostError} `CANCELLED`, `HOST_CLOSED`; nothing has been started or told then.
   */
  async publish(request: PublishRequest = {}): Promise<readonly PlannedServer[]> {
    const leave = await this.#lane.enter(request.signal)
    const reconnectsAll = this.#reconnectsAll
    this.#reconnectsAll = false
    let isPublished = false
    try {
      const planned = await this.#plan(reconnectsAll ? { ...request, reconnect: 'all' } : request)
      this.#assertOpen() // a close that came since then would not know of what is made now
      const rows = plannedServers(planned, this.#members)
      this.#swap(planned, rows)
      isPublished = true
      this.#definitions = request.definitions ?? this.#definitions
      return rows
    } finally {
      // Whoever asked for a reconnect has not got it.
      if (!isPublished && reconnectsAll) this.#reconnectsAll = true
      leave()
    }
  }

  /** What publishing would do, without doing it. @throws {HostError} `CANCELLED`, `HOST_CLOSED` */
  async preview(request: PublishRequest): Promise<readonly PlannedServer[]> {
    return plannedServers(await this.#plan(request), this.#members)
  }

  /** What publishing would do if the servers of `running` were published, and ready as far as they may be. */
  async previewFrom(
    running: readonly ServerDefinition[],
    { definitions = [], signal }: PublishRequest,
  ): Promise<readonly PlannedServer[]> {
    const observe = (all: readonly ServerDefinition[]): Promise<Observed[]> =>
      observeDefinitions({ definitions: all, previous: undefined, signal }, this.#settings)
    return plannedChange(await observe(running), await observe(definitions))
  }

  async #plan(request: PublishRequest): Promise<PlannedConnection[]> {
    this.#assertOpen()
    const { definitions = this.#definitions, reconnect = new Set<string>(), retriesFailed = true, signal } = request
    const previous = this.#published?.value.members
    const observed = await observeDefinitions({ definitions, previous, signal }, this.#settings)
    if (signal?.aborted === true) throw new HostError('CANCELLED', 'Cancelled by the caller', { cause: signal.reason })
    this.#assertOpen()
    return observed.map((one) => {
      const before = previous?.get(one.desired.definition.name)
      const seen = before === undefined ? undefined : observeConnection(before.connection.value, before.desired)
      return { observed: one, previous: before, plan: planConnection(seen, one.desired, { reconnect, retriesFailed }) }
    })
  }

  /** In one step: nobody sees half of a generation. */
  #swap(planned: readonly PlannedConnection[], rows: readonly PlannedServer[]): void {
    const { emit } = this.#settings
    const gate = new PublicationGate(emit)
    this.#generations += 1
    const emitFor = (catalog: Member['catalog'], event: HostEvent): void => {
      if (this.#silenced.has(catalog)) return
      this.#noteFailure(event)
      gate.emit(event)
    }
    const members = carryOut(planned, this.#settings, { connections: this.#connections, emit: emitFor })
    const next = new Generation(this.#generations, members)
    const retired = this.#published
    this.#silenceOthers(members)
    this.#generation = new Shared(next)
    this.#published = this.#generation.acquire()
    for (const { catalog, view } of members.values()) catalog.countWith(() => view.live?.tools.length)
    emit({ kind: 'set.published', generation: next.number, servers: rows })
    gate.publish()
    const retiring = retired === undefined ? undefined : Promise.resolve(retired[Symbol.asyncDispose]()).catch(() => {})
    this.#forgetClosed()
    if (retired !== undefined) this.#noteLeaving(retired.value)
    for (const [server, { plan, connection }] of members) {
      // A server may need the port or the lock of the old one: that is gone before the new one starts, unless a binding still uses it.
      const released = this.#leaving.get(server)
      if (released !== undefined && plan.kind !== 'reuse') connection.value.startAfter(released)
      if (plan.kind === 'start') connection.value.need()
    }
    this.#keep(reportStartup(next, { emit, emitFor }))
    if (retiring !== undefined) this.#keep(retiring.then(() => this.#forgetClosed()))
  }

  /** Also those that are not in the next generation: they may come back while their old connection is still ending. */
  #noteLeaving(generation: Generation): void {
    for (const server of generation.members.keys()) {
      const released = generation.whenReleased(server)
      if (released === undefined) continue
      const all = Promise.allSettled([this.#leaving.get(server), released]).then(() => {
        if (this.#leaving.get(server) === all) this.#leaving.delete(server)
      })
      this.#leaving.set(server, all)
    }
  }

  /** What is no longer published says nothing under a name that others have now. */
  #silenceOthers(members: ReadonlyMap<string, Member>): void {
    const kept = new Set([...members.values()].map(({ catalog }) => catalog))
    for (const { catalog } of this.#members) if (!kept.has(catalog)) this.#silenced.add(catalog)
    for (const server of this.#failures.keys()) if (!members.has(server)) this.#failures.delete(server)
  }

  #noteFailure(event: HostEvent): void {
    if (event.kind !== 'server.state-changed') return
    const { name, state, reason, sinceAtMs } = event.status
    const isFailure = state === 'failed' || state === 'needs-auth' || state === 'needs-input'
    if (isFailure && reason !== undefined) this.#failures.set(name, { ...reason, atMs: sinceAtMs })
  }

  /** Starts one server anew and waits until it has settled. @throws {HostError} `SERVER_UNKNOWN`, `HOST_CLOSED` */
  async reconnect(server: string): Promise<ServerStatus> {
    this.#member(server)
    await this.publish({ reconnect: new Set([server]), retriesFailed: false })
    return this.#settledStatus(server)
  }

  /** Starts all of them anew, side by side. @throws {HostError} `HOST_CLOSED` */
  async reconnectAll(): Promise<readonly ServerStatus[]> {
    await this.publish({ reconnect: 'all' })
    return Promise.all(this.#members.map(({ desired }) => this.#settledStatus(desired.definition.name)))
  }

  /** Somebody else may ask for another reconnect meanwhile. */
  async #settledStatus(server: string): Promise<ServerStatus> {
    for (;;) {
      const { value } = this.#member(server).connection
      await settled(value)
      if (this.#member(server).connection.value === value) return value.status
    }
  }

  /** Resolves when none of the servers is starting. Naming servers needs them: those that sleep are started. */
  async whenSettled(options: {
    readonly waitMs?: number | undefined
    readonly servers?: readonly string[] | undefined
    readonly signal?: AbortSignal | undefined
  }): Promise<void> {
    const { waitMs, servers, signal } = options
    const waiting = (servers === undefined ? this.#members : servers.map((name) => this.#member(name))).map(
      ({ connection }) => connection.value,
    )
    if (servers !== undefined) for (const connection of waiting) connection.need()
    const all = Promise.all(waiting.map(settled)).then(() => {})
    await untilAborted(waitMs === undefined ? all : this.#within(all, waitMs), signal)
  }

  /** Ends every start that is under way; what is ready or asleep is left as it is. */
  cancelStarts(): void {
    for (const { connection } of this.#members) connection.value.cancelStart()
  }

  /** @throws {HostError} `REQUIRED_SERVERS_FAILED` names them all; `CANCELLED` on abort. */
  requireReady(signal?: AbortSignal): Promise<void> {
    return requireReady(this.#members, (connection) => untilAborted(settled(connection), signal))
  }

  /**
   * The frozen view of now. A failed server whose time has come is started again; nobody waits for it.
   * @throws {HostError} `HOST_CLOSED`, `CANCELLED`
   */
  async bind(request: CaptureRequest = {}): Promise<Binding> {
    this.#assertOpen()
    const shared = this.#generation
    const lease = shared?.acquire()
    if (shared === undefined || lease === undefined) throw new HostError('INTERNAL', 'Nothing is published')
    try {
      const captured = await capture(lease.value, request, this.#capturing)
      // After the view was taken: it tells why they are not in it.
      for (const { connection } of lease.value.members.values())
        if (connection.value.state.kind === 'failed') connection.value.need()
      return new LiveBinding(captured, lease, shared)
    } catch (error) {
      await lease[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Calls a tool of the published generation by name. Never rejects. */
  callTool(call: DirectCall): Promise<CallOutcome> {
    return callTool(call, { ...this.#services, live: this })
  }

  /** Every server's tools for whoever looks around. @throws {HostError} `CANCELLED`, `HOST_CLOSED` */
  discoverTools(options: DiscoveryOptions): Promise<Aggregate<CatalogTool>> {
    this.#assertOpen()
    return discoverTools(this.#members, this.#settings.names, options)
  }

  /** Resources of the servers of now. */
  get resources(): ResourceClient {
    this.#resources ??= new LiveResourceClient(this, this.#settings.protocol.platform)
    return this.#resources
  }

  authScope(server: string): object | undefined {
    const member = this.#published?.value.members.get(server)
    return member === undefined ? undefined : this.#settings.account?.(member.desired.definition)
  }

  /** Why a server is as it is; undefined for one that is not published. */
  serverLife(server: string): ServerLife | undefined {
    const member = this.#published?.value.members.get(server)
    const facts = { generation: this.generation, lastFailure: this.#failures.get(server) }
    return member === undefined ? undefined : serverLife(member, facts)
  }

  /** The tools that a text may mean. */
  toolLives(text: string): readonly ToolLife[] {
    const { names } = this.#settings
    const views = this.#members.map(({ view }) => view)
    const snapshots = views.flatMap((view) => view.live ?? view.cached ?? [])
    return toolLife(text, { views, shown: toolView(snapshots, names), names })
  }

  /** The connection of a server. @throws {HostError} `SERVER_UNKNOWN` */
  connection(server: string): ServerConnection {
    return this.#member(server).connection.value
  }

  member(server: string): LiveServer | undefined {
    const member = this.#published?.value.members.get(server)
    return member === undefined ? undefined : { ...member, connection: member.connection.value }
  }

  names(): readonly string[] {
    return [...(this.#published?.value.members.keys() ?? [])]
  }

  /** Ends every connection, also those that bindings still hold. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const connections = [...this.#connections.keys()]
    for (const connection of connections) connection.cancelStart()
    const ends = connections.map((connection) => connection[Symbol.asyncDispose]())
    let isOver = false
    const all = Promise.all(ends)
      .then(() => Promise.all(this.#reports))
      .then(() => {
        isOver = true
      })
    await this.#within(all, CLOSE_TIMEOUT_MS)
    if (!isOver) throw new HostError('INTERNAL', `Not every server could be closed within ${CLOSE_TIMEOUT_MS} ms`)
  }

  /** The members of the published generation, in the order of the definitions. */
  get #members(): readonly Member[] {
    return [...(this.#published?.value.members.values() ?? [])]
  }

  #member(server: string): Member {
    const member = this.#published?.value.members.get(server)
    if (member !== undefined) return member
    throw new HostError('SERVER_UNKNOWN', `There is no server "${server}"`, { details: { server } })
  }

  /** What the last binding gave back may still be ending: the close waits for that, too. */
  #forgetClosed(): void {
    for (const [connection, shared] of this.#connections) {
      if (!shared.isClosed) continue
      this.#connections.delete(connection)
      this.#keep(connection[Symbol.asyncDispose]().catch(() => {}))
    }
  }

  /** Awaited by the close. */
  #keep(work: Promise<void>): void {
    this.#reports.add(work)
    void work.finally(() => this.#reports.delete(work))
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new HostError('HOST_CLOSED', 'The host is closed')
  }

  async #within(promise: Promise<void>, ms: number): Promise<void> {
    const { platform } = this.#settings.protocol
    let timer: object | undefined
    const over = new Promise<void>((resolve) => {
      timer = platform.setTimer(resolve, ms)
    })
    try {
      await Promise.race([promise, over])
    } finally {
      platform.clearTimer(timer)
    }
  }
}
