// Where races are run: one host in a simulated world whose seed decides who comes first. Nothing here is real, so a race can be run two hundred times.

import { drain, World } from '../../testkit/src/simulation/index.ts'
import type { Program } from '../../testkit/src/simulation/programs.ts'
import {
  type Binding,
  type CallOptions,
  type CallOutcome,
  type CatalogTool,
  createHost,
  defineServer,
  type Host,
  type HostEvent,
  type HostOptions,
  type ServerDefinition,
  type ServerStatus,
} from '../src/index.ts'

const PATIENCE_MS = 120_000
const MICROTASKS_MAX = 8
const EVENTS_MAX = 12

/** What is thrown when a race is lost. */
export function must(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(what)
}

/** How a promise ended. */
export type Ended<T> = { readonly value: T } | { readonly error: unknown }

/** A call and the number by which its server knows it. */
export interface ArenaCall {
  readonly token: number
  readonly outcome: Promise<CallOutcome>
}

/** One race. */
export class Arena implements AsyncDisposable {
  readonly world: World
  /** Everything that happened, in order. */
  readonly lines: string[] = []
  readonly events: HostEvent[] = []
  #host: Host | undefined
  #tokens = 0

  constructor(seed: number) {
    this.world = new World(seed)
    this.world.trace.onLine = (line) => this.lines.push(line)
  }

  get host(): Host {
    if (this.#host === undefined) throw new Error('no host yet')
    return this.#host
  }
  get random(): World['random'] {
    return this.world.random
  }

  /** A server as a process. Its program speaks both eras and lists every tool, unless it is changed. */
  stdio(name: string, more: Partial<ServerDefinition> = {}): ServerDefinition {
    const transport = { kind: 'stdio', command: `sim-${name}`, args: ['v0'], env: {}, envVars: [] } as const
    return defineServer({ name, transport, ...limits, ...more })
  }

  /** A server behind a URL. */
  http(name: string, more: Partial<ServerDefinition> = {}, transport: object = {}): ServerDefinition {
    const base = { kind: 'http', url: `http://${name}.sim/v0`, headers: {}, envHeaders: {} } as const
    return defineServer({ name, transport: { ...base, ...transport }, ...limits, ...more })
  }

  /** The program behind a server. */
  program(name: string): Program {
    return this.world.programs.of(name.startsWith('h') ? `${name}.sim/v0` : `sim-${name}/v0`)
  }

  /** A program without surprises. */
  steady(name: string, eras: Program['eras'] = 'legacy'): Program {
    const program = this.program(name)
    program.eras = eras
    program.listings[0] = ['add', 'find', 'idem']
    program.act = () => 'answer'
    program.beginning = () => 'ok'
    return program
  }

  async start(definitions: readonly ServerDefinition[], options: Partial<HostOptions> = {}): Promise<Host> {
    const platform = this.world.platform()
    const making = createHost({
      definitions,
      platform,
      stateDirectory: '/state',
      cacheDirectory: '/cache',
      onEvent: (event) => {
        this.events.push(event)
        if (event.kind === 'server.state-changed') this.note(`${event.status.name} ${event.status.state}`)
      },
      ...options,
    })
    this.#host = await this.value(making)
    return this.#host
  }

  note(line: string): void {
    this.world.note(line)
  }

  /** A moment of any length: some microtasks, some events, some milliseconds. */
  async moment(msMax = 60): Promise<void> {
    const { random, world } = this
    switch (random.below(3)) {
      case 0:
        for (let tick = random.below(MICROTASKS_MAX); tick > 0; tick--) await Promise.resolve()
        return
      case 1:
        return this.#someEvents(random.below(EVENTS_MAX), msMax)
      default:
        return world.pass(random.below(msMax))
    }
  }

  /** Not those that are far away: a race is about what is close together. */
  async #someEvents(count: number, msMax: number): Promise<void> {
    const { timeline } = this.world
    const endsAtMs = timeline.nowMs + msMax
    for (let left = count; left > 0; left--) {
      await drain()
      if ((timeline.nextAtMs ?? Number.POSITIVE_INFINITY) > endsAtMs) return
      await this.world.run(1)
    }
  }

  /** Lets the world go on until the promise has settled. */
  async ended<T>(promise: PromiseLike<T>, msMax = PATIENCE_MS): Promise<Ended<T>> {
    let end: Ended<T> | undefined
    void Promise.resolve(promise).then(
      (value) => (end = { value }),
      (error: unknown) => (end = { error }),
    )
    await this.world.until(() => end !== undefined, msMax)
    if (end === undefined) throw new Error(`did not settle within ${msMax} ms`)
    return end
  }

  async value<T>(promise: PromiseLike<T>, msMax = PATIENCE_MS): Promise<T> {
    const end = await this.ended(promise, msMax)
    if ('error' in end) throw end.error
    return end.value
  }

  /** Disposes of something; what ends with it takes its time. */
  async release(held: AsyncDisposable): Promise<void> {
    await this.value(Promise.resolve(held[Symbol.asyncDispose]()))
  }

  status(name: string): ServerStatus {
    const status = this.host.statuses.find((one) => one.name === name)
    if (status === undefined) throw new Error(`no server ${name}`)
    return status
  }

  /** Nothing is starting. */
  async rest(): Promise<void> {
    await this.value(this.host.whenSettled())
  }

  bind(options: Parameters<Host['bind']>[0] = { grace: 'none' }): Promise<Binding> {
    return this.value(this.host.bind(options))
  }

  tool(binding: Binding, server: string, rawName = 'add'): CatalogTool {
    const tool = binding.tools.find((one) => one.server === server && one.rawName === rawName)
    if (tool === undefined) throw new Error(`${server}/${rawName} is not in the binding`)
    return tool
  }

  call(binding: Binding, tool: CatalogTool, options: CallOptions = {}): ArenaCall {
    const token = ++this.#tokens
    return { token, outcome: binding.call(tool, { token }, options) }
  }

  /** Tells every client and every process of a program that its tools changed. */
  announce(program: Program): void {
    const { processes, network } = this.world
    for (const server of processes.servers) if (server.program === program) server.announce()
    network.announce(program)
  }

  /** How many lines of the trace say this. */
  count(pattern: RegExp): number {
    return this.lines.filter((line) => pattern.test(line)).length
  }

  /** Closes the host; nothing may be left. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#host === undefined) return
    await this.value(this.#host.close())
    await drain()
    const { timeline, processes, network, hostPid } = this.world
    must(timeline.timerCount === 0, `timers are left: ${timeline.timersLeft.join('; ')}`)
    await this.world.pass(3_000)
    const pids = processes.running.map(({ facts }) => facts.pid).filter((pid) => pid !== hostPid)
    must(pids.length === 0, `processes are left: ${pids.join(', ')}`)
    must(network.clients.length === 0, 'an HTTP client is left')
    this.#host = undefined
  }
}

const limits = { startup: 'eager', startupTimeoutMs: 4_000, toolTimeoutMs: 5_000, toolTotalTimeoutMs: 15_000 } as const
