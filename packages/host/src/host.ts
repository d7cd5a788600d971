// The composition root: the only file that may know every room.
import { HostError, Scope, VERSION } from './base/index.ts'
import { NAME_CHARS_LIMIT, NAME_CHARS_MIN } from './catalog/index.ts'
import type { ServerDefinition } from './config/index.ts'
import type { ServerPort } from './connection/index.ts'
import { clientSide, type HostHandlers } from './elicitation/index.ts'
import { EventBus, type HostEventListener, type ServerStatus } from './events/index.ts'
import {
  type Authorization,
  LaunchMemory,
  nodePlatform,
  type Platform,
  type ProtocolSettings,
  reapLeftovers,
} from './protocol/index.ts'
import { type Binding, ConnectionSet, type DedicatedOptions, DedicatedPorts, type SetSettings } from './set/index.ts'

/** What {@link createHost} takes. Only `definitions` is required. */
export interface HostOptions {
  readonly definitions: readonly ServerDefinition[]
  /** Default: name `convoke` and the version of this package. */
  readonly clientInfo?: { readonly name: string; readonly version: string; readonly title?: string }
  /** Where lease files are kept, so that the next start can end what this one may leave. Absent: nothing is noted and nothing reaped. */
  readonly stateDirectory?: string
  /** Where it is remembered which protocol era each server speaks. Absent: in memory only. */
  readonly cacheDirectory?: string
  /** Default: the real one. */
  readonly platform?: Platform
  /** `undici` costs less per call and more at the start: for long-lived hosts. Default `node`. */
  readonly http?: 'node' | 'undici'
  /** When queued messages are written: at the end of a tick, or of a turn of the event loop (for gateways). Default `tick`. */
  readonly writeBurst?: 'tick' | 'turn'
  readonly handlers?: HostHandlers
  /**
   * How long a server's process may take to end by itself once its input has ended, in milliseconds; then SIGTERM to its group, and 2 s later SIGKILL.
   * Default 2,000. Many servers never notice the end of their input: a program that ends after a moment does better with less.
   */
  readonly closeGraceMs?: number
  /** Which servers are started at once; the others when they are named to `whenSettled`, `reconnect` or `openDedicated`. Default `all`. */
  readonly start?: 'all' | readonly string[]
  /** Longest flat name, in characters, 24 to 128. Default 48. */
  readonly nameCharsMax?: number
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
   * The frozen view of now. Servers still starting are not in it; servers that failed are started again if their time has come.
   * @throws {HostError} `HOST_CLOSED`, `CANCELLED`
   */
  bind(options?: { readonly signal?: AbortSignal }): Promise<Binding>
  /** A connection of its own to one server, for a client whose capabilities it carries. @throws {HostError} */
  openDedicated(server: string, options: DedicatedOptions): Promise<ServerPort & AsyncDisposable>
  /**
   * Makes a new connection to the server and resolves when it has settled. The old one ends, but not before the last binding that holds
   * it is disposed.
   * @throws {HostError} `SERVER_UNKNOWN`, `HOST_CLOSED`
   */
  reconnect(server: string): Promise<ServerStatus>
  /** Ends everything: processes, sockets, timers. Idempotent. @throws {HostError} `INTERNAL` when a server could not be ended in time. */
  close(): Promise<void>
}

/** Flat names: clients put prefixes of their own before them. */
const NAME_CHARS_MAX = 48

/**
 * Makes a host and starts its servers side by side. Resolves at once, before any server has answered.
 *
 * @throws {HostError} `OPTIONS_INVALID` for two definitions of one name, an unknown name in `start`, or a `nameCharsMax` out of range.
 */
export async function createHost(options: HostOptions): Promise<Host> {
  checkOptions(options)
  const host = new RunningHost(options)
  await host.begin()
  return host
}

class RunningHost implements Host {
  readonly #options: HostOptions
  readonly #bus = new EventBus()
  readonly #scope = new Scope()
  readonly #settings: SetSettings
  readonly #set: ConnectionSet
  readonly #dedicated: DedicatedPorts

  constructor(options: HostOptions) {
    this.#options = options
    const protocol = protocolSettings(options)
    this.#settings = {
      definitions: options.definitions,
      protocol,
      authorization: options.authorization,
      start: options.start ?? 'all',
      nameCharsMax: options.nameCharsMax ?? NAME_CHARS_MAX,
      watch: options.watch ?? 'changes',
      emit: (event) => this.#bus.emit(event),
    }
    this.#set = new ConnectionSet(this.#settings)
    this.#dedicated = new DedicatedPorts(this.#settings)
    if (options.onEvent !== undefined) this.#bus.subscribe(options.onEvent)
    this.#scope.defer(() => protocol.memory.flush())
    // Side by side: each of them has processes that may take their time.
    this.#scope.defer(async () => {
      const ends = await Promise.allSettled([this.#set.close(), this.#dedicated.close()])
      for (const end of ends) if (end.status === 'rejected') throw end.reason
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
    if (signal?.aborted === true) await this.close()
    else await this.#set.publish()
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

  async bind({ signal }: { readonly signal?: AbortSignal } = {}): Promise<Binding> {
    if (signal?.aborted === true) throw new HostError('CANCELLED', 'Cancelled by the caller', { cause: signal.reason })
    return this.#set.bind()
  }

  async openDedicated(server: string, options: DedicatedOptions): Promise<ServerPort & AsyncDisposable> {
    if (this.#scope.isClosed) throw new HostError('HOST_CLOSED', 'The host is closed')
    return this.#dedicated.open(this.#set.connection(server), options)
  }

  reconnect(server: string): Promise<ServerStatus> {
    return this.#set.reconnect(server)
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

/** @throws {HostError} `OPTIONS_INVALID` */
function checkOptions({ definitions, start, nameCharsMax }: HostOptions): void {
  const names = new Set<string>()
  for (const { name } of definitions) {
    if (names.has(name)) throw new HostError('OPTIONS_INVALID', `Two definitions have the name "${name}"`)
    names.add(name)
  }
  const stranger = start === undefined || start === 'all' ? undefined : start.find((name) => !names.has(name))
  if (stranger !== undefined) throw new HostError('OPTIONS_INVALID', `start names "${stranger}", which is not defined`)
  if (nameCharsMax === undefined) return
  if (!Number.isInteger(nameCharsMax) || nameCharsMax < NAME_CHARS_MIN || nameCharsMax > NAME_CHARS_LIMIT)
    throw new HostError(
      'OPTIONS_INVALID',
      `nameCharsMax is a whole number from ${NAME_CHARS_MIN} to ${NAME_CHARS_LIMIT}`,
    )
}

function protocolSettings(options: HostOptions): ProtocolSettings {
  const platform = options.platform ?? nodePlatform
  const { stateDirectory, cacheDirectory, clientInfo, http, writeBurst, handlers, closeGraceMs } = options
  return {
    platform,
    clientInfo: clientInfo ?? { name: 'convoke', version: VERSION },
    ...clientSide(handlers ?? {}),
    http: http ?? 'node',
    writeBurst: writeBurst ?? 'tick',
    leaseDirectory: stateDirectory === undefined ? undefined : `${stateDirectory}/leases`,
    closeGraceMs,
    memory: new LaunchMemory(platform, cacheDirectory),
  }
}
