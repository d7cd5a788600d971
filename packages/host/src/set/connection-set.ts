// MANY servers: which connections there are, which generation of them is published, and who still holds an older one.
import { HostError, Lane, type Lease, Shared, untilAborted } from '../base/index.ts'
import { OutputSchemas, type ToolSnapshot, type ToolView, toolView } from '../catalog/index.ts'
import type { ServerConnection } from '../connection/index.ts'
import { PublicationGate, type ServerStatus } from '../events/index.ts'
import type { Binding } from './binding.ts'
import type { BoundServer } from './bound-server.ts'
import { type Connections, carryOut } from './carry-out.ts'
import { desiredConnections } from './desired.ts'
import { Generation, type Member } from './generation.ts'
import { LiveBinding } from './live-binding.ts'
import { observeConnection } from './observe.ts'
import { planConnection } from './plan.ts'
import type { SetSettings } from './settings.ts'

/** Longest a close may take before it is reported as failed, in milliseconds. A process is killed well before. */
const CLOSE_TIMEOUT_MS = 15_000

/** The published connections. */
export class ConnectionSet {
  readonly #settings: SetSettings
  readonly #connections: Connections = new Map()
  readonly #outputs = new OutputSchemas()
  /** One publication after the other. */
  readonly #lane = new Lane()
  #generation: Shared<Generation> | undefined
  #published: Lease<Generation> | undefined
  #generations = 0
  #view: { readonly snapshots: readonly ToolSnapshot[]; readonly view: ToolView } | undefined
  #closing: Promise<void> | undefined

  constructor(settings: SetSettings) {
    this.#settings = settings
  }

  /** One per definition, in their order. */
  get statuses(): readonly ServerStatus[] {
    return this.#members.map(({ connection }) => connection.value.status)
  }

  /**
   * Makes the next generation and publishes it: the old one retires, then what was held back is told, then the new connections start.
   * @param reconnect Servers that are started anew although nothing about them changed.
   */
  async publish(reconnect: ReadonlySet<string> = new Set()): Promise<void> {
    const leave = await this.#lane.enter()
    try {
      await this.#publish(reconnect)
    } finally {
      leave()
    }
  }

  async #publish(reconnect: ReadonlySet<string>): Promise<void> {
    this.#assertOpen()
    const { emit } = this.#settings
    const gate = new PublicationGate(emit)
    const next = this.#make(reconnect, gate)
    const retired = this.#published
    this.#generation = new Shared(next)
    this.#published = this.#generation.acquire()
    // Statuses count the tools that the published configuration lets through.
    for (const { catalog, view } of next.members.values()) catalog.countWith(() => view.live?.tools.length)
    gate.publish()
    // A replaced server may need the port or the lock of the old one: it is gone before the new one starts, unless a binding still uses it.
    await retired?.[Symbol.asyncDispose]()
    this.#forgetClosed()
    if (this.#closing !== undefined) return
    for (const { plan, connection } of next.members.values()) if (plan.kind === 'start') connection.value.need()
  }

  /** Starts one server anew and waits until it has settled. @throws {HostError} `SERVER_UNKNOWN`, `HOST_CLOSED` */
  async reconnect(server: string): Promise<ServerStatus> {
    this.#member(server)
    await this.publish(new Set([server]))
    for (;;) {
      ;(await this.#lane.enter())() // a publication that is under way has not woken its connections yet
      const { value } = this.#member(server).connection
      await settledForGood(value)
      // Somebody else may have asked for another reconnect meanwhile.
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
    const settled = Promise.all(waiting.map((connection) => settledForGood(connection))).then(() => {})
    await untilAborted(waitMs === undefined ? settled : this.#within(settled, waitMs), signal)
  }

  /** The frozen view of now. A failed server whose time has come is started again; nobody waits for it. */
  bind(): Binding {
    this.#assertOpen()
    const lease = this.#generation?.acquire()
    if (lease === undefined) throw new HostError('INTERNAL', 'Nothing is published')
    const members = [...lease.value.members.values()]
    const binding = new LiveBinding({
      lease,
      servers: members.flatMap(boundServer),
      view: this.#viewOf(members),
      statuses: members.map(({ connection }) => connection.value.status),
      outputs: this.#outputs,
      nameCharsMax: this.#settings.nameCharsMax,
      platform: this.#settings.protocol.platform,
    })
    // After the view was taken: it tells why they are not in it.
    for (const { connection } of members) if (connection.value.state.kind === 'failed') connection.value.need()
    return binding
  }

  /** The definition of a server. @throws {HostError} `SERVER_UNKNOWN` */
  connection(server: string): ServerConnection {
    return this.#member(server).connection.value
  }

  /** Ends every connection, also those that bindings still hold. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const connections = [...this.#connections.keys()]
    for (const connection of connections) connection.cancelStart()
    const all = Promise.all(connections.map((connection) => connection[Symbol.asyncDispose]()))
    let isOver = false
    await this.#within(
      all.then(() => {
        isOver = true
      }),
      CLOSE_TIMEOUT_MS,
    )
    if (!isOver) throw new HostError('INTERNAL', `Not every server could be closed within ${CLOSE_TIMEOUT_MS} ms`)
  }

  get #members(): readonly Member[] {
    return [...(this.#published?.value.members.values() ?? [])]
  }

  #member(server: string): Member {
    const member = this.#published?.value.members.get(server)
    if (member !== undefined) return member
    throw new HostError('SERVER_UNKNOWN', `There is no server "${server}"`, { details: { server } })
  }

  #make(reconnect: ReadonlySet<string>, gate: PublicationGate): Generation {
    const { definitions, start, protocol } = this.#settings
    const previous = this.#published?.value.members
    const planned = desiredConnections(definitions, { start, env: protocol.platform.env }).map((desired) => {
      const before = previous?.get(desired.definition.name)
      const observed = before === undefined ? undefined : observeConnection(before.connection.value, before.identity)
      return { desired, previous: before, plan: planConnection(observed, desired, { reconnect }) }
    })
    this.#generations += 1
    return new Generation(
      this.#generations,
      carryOut(planned, this.#settings, { connections: this.#connections, gate }),
    )
  }

  /** Named anew only when a server came, went or listed something else. */
  #viewOf(members: readonly Member[]): ToolView {
    const snapshots = members.flatMap(({ connection, view: { live } }) =>
      connection.value.session === undefined || live === undefined ? [] : [live],
    )
    const known = this.#view
    if (known?.snapshots.length === snapshots.length && known.snapshots.every((one, index) => one === snapshots[index]))
      return known.view
    const view = toolView(snapshots, this.#settings.nameCharsMax)
    this.#view = { snapshots, view }
    return view
  }

  #forgetClosed(): void {
    for (const [connection, shared] of this.#connections) if (shared.isClosed) this.#connections.delete(connection)
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

/** A start that fails may be followed by another one that somebody needs: settled is when none is under way. */
async function settledForGood(connection: ServerConnection): Promise<void> {
  while (connection.isStarting) await connection.whenSettled()
}

function boundServer({ connection, catalog, view }: Member): BoundServer[] {
  const { session } = connection.value
  const { definition } = view
  return session === undefined ? [] : [{ definition, session, catalog, view, connection: connection.value }]
}
