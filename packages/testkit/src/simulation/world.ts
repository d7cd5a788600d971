// A whole world for one host: a clock that only moves when it is told to, and everything that the host can touch. One seed decides all of it.
import type { Platform } from '@convoke/wire'
import { MemoryFiles } from './files.ts'
import type { Invariant } from './invariants.ts'
import { Ledger } from './ledger.ts'
import { SimulatedNetwork } from './network.ts'
import { SimulatedProcesses } from './processes.ts'
import { Programs } from './programs.ts'
import { Random } from './random.ts'
import type { ServerWorld } from './server-brain.ts'
import { drain, Timeline } from './timeline.ts'
import { Trace } from './trace.ts'

/** Somewhere in 2026, so that dates look like dates. */
const EPOCH_MS = 1_790_000_000_000
const USER_ID = 1_000

/** The simulated world. Its `platform` is what a host is made with. */
export class World implements ServerWorld {
  readonly random: Random
  readonly timeline: Timeline
  readonly trace: Trace = new Trace()
  readonly ledger: Ledger = new Ledger()
  readonly programs: Programs
  readonly processes: SimulatedProcesses
  readonly network: SimulatedNetwork
  readonly files: MemoryFiles
  /** The environment of the host; a step may change it. */
  readonly env: Record<string, string | undefined> = { PATH: '/simulated', HOME: '/home' }
  /** The host process itself. */
  hostPid: number
  readonly #exitListeners = new Set<() => void>()
  /** Told when the host does to a server what no host should. */
  onFault: (invariant: Invariant, message: string) => void = () => {}
  /** The disk is full, or broken. */
  isDiskBroken = false

  constructor(seed: number) {
    this.random = new Random(seed)
    this.timeline = new Timeline(this.random)
    this.programs = new Programs(this.random)
    this.processes = new SimulatedProcesses(this)
    this.network = new SimulatedNetwork(this, this.programs)
    this.files = new MemoryFiles({
      userId: USER_ID,
      nowMs: () => this.dateMs,
      delay: (operation) => this.#disk(operation),
    })
    this.hostPid = this.processes.add({ command: 'host', env: {} })
  }

  /** Listeners for the end of the host process that are still there. */
  get exitListenerCount(): number {
    return this.#exitListeners.size
  }

  /** Milliseconds of the epoch, as the host sees them. */
  get dateMs(): number {
    return EPOCH_MS + this.timeline.nowMs
  }

  fault(invariant: Invariant, message: string): void {
    this.onFault(invariant, message)
  }

  note(line: string): void {
    this.trace.add(`${this.timeline.nowMs} ${line}`)
  }

  /** A platform of its own for each life of the host: what is kept per platform belongs to one life. */
  platform(): Platform {
    const { timeline, processes, network, files, random } = this
    const pid = this.hostPid
    return {
      now: () => timeline.nowMs,
      dateMs: () => this.dateMs,
      setTimer: (callback, ms, kind) => timeline.setTimer(callback, ms, kind),
      clearTimer: (timer) => timeline.clearTimer(timer),
      randomBytes: (count) => Buffer.from(Array.from({ length: count }, () => random.below(256))),
      env: this.env,
      os: 'linux',
      pid,
      userId: USER_ID,
      processes,
      spawn: (spec) => processes.spawn(spec, this.programs.of(`${spec.command}/${spec.args.join('/')}`)),
      kill: (target, signal, to) => processes.kill(target, signal, to),
      onExit: (listener) => {
        this.#exitListeners.add(listener)
        return () => void this.#exitListeners.delete(listener)
      },
      files,
      http: (url) => network.connect(url),
    }
  }

  /** Lets at most `events` things happen, each with all that follows at once. */
  async run(events: number): Promise<void> {
    await drain() // what was just asked for leaves before the clock moves
    for (let count = 0; count < events; count++) {
      if (!this.timeline.step()) return
      await drain()
    }
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    const endsAtMs = this.timeline.nowMs + ms
    await drain()
    for (;;) {
      const nextAtMs = this.timeline.nextAtMs
      if (nextAtMs === undefined || nextAtMs > endsAtMs) break
      this.timeline.step()
      await drain()
    }
    this.timeline.nowMs = Math.max(this.timeline.nowMs, endsAtMs)
  }

  /** Lets time pass until something is true, or `msMax` are over. */
  async until(isTrue: () => boolean, msMax: number): Promise<boolean> {
    const endsAtMs = this.timeline.nowMs + msMax
    for (;;) {
      await drain()
      if (isTrue()) return true
      const nextAtMs = this.timeline.nextAtMs
      if (nextAtMs === undefined || nextAtMs > endsAtMs) return false
      this.timeline.step()
    }
  }

  #disk(operation: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.timeline.later(0, 5, () => {
        if (this.isDiskBroken && operation === 'write')
          reject(Object.assign(new Error('ENOSPC: simulated'), { code: 'ENOSPC' }))
        else resolve()
      })
    })
  }
}
