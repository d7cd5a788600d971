// Runs a list of steps against a host in a simulated world, and stops at the first broken promise.
import type { Binding } from '@convoke/host'
import { ACTIONS, look } from './actions.ts'
import { Checks } from './checks.ts'
import { Life, programKey, type Violation } from './life.ts'
import type { Step } from './steps.ts'
import { drain } from './timeline.ts'
import { allows } from './wanted.ts'

/** How a run ended. */
export interface SimulationResult {
  readonly violation?: Violation
  /** Steps that were done, the failing one included. */
  readonly steps: number
  /** Two runs of one seed have the same. */
  readonly digest: string
  /** The last lines of the trace. */
  readonly tail: readonly string[]
  readonly figures: Readonly<Record<string, number>>
}

/** What a run is given besides its steps. */
export interface SimulationOptions {
  readonly seed: number
  onLine?(line: string): void
  /** Hears of the life that is lived, before its first step. */
  begun?(life: Life): void
}

/** Virtual time in which a failed server may be started again, in ms. */
const RETRY_MS = 31_000
/** Within this time everything has to be well again when every server is, in ms. */
const HEALING_MS_MAX = 120_000
/** What the world still has to do after a host has closed: streams that end, processes that were killed. In ms. */
const AFTERMATH_MS = 3_000

/** Runs the steps of one seed. Never rejects: what goes wrong is a violation. */
export async function simulate(steps: Iterable<Step>, options: SimulationOptions): Promise<SimulationResult> {
  const run = new Run(options)
  const onRejection = (error: unknown): void =>
    run.life.violate('no failure goes unheard', error instanceof Error ? (error.stack ?? '') : String(error))
  process.on('unhandledRejection', onRejection)
  try {
    await run.all(steps)
  } catch (error) {
    run.life.violate('the simulation itself works', error instanceof Error ? (error.stack ?? '') : String(error))
  } finally {
    process.off('unhandledRejection', onRejection)
  }
  return run.result
}

class Run {
  readonly life: Life
  readonly #checks: Checks
  #steps = 0
  #restarts = 0
  #heals = 0

  constructor({ seed, onLine, begun }: SimulationOptions) {
    this.life = new Life(seed)
    begun?.(this.life)
    this.life.world.trace.onLine = onLine
    this.life.world.timeline.keepsPlaces = onLine !== undefined
    this.#checks = new Checks(this.life)
  }

  get result(): SimulationResult {
    const { violations, world, callCount, bindingCount, eventCount } = this.life
    const [violation] = violations
    return {
      ...(violation === undefined ? {} : { violation }),
      steps: this.#steps,
      digest: world.trace.digest,
      tail: world.trace.tail,
      figures: {
        calls: callCount,
        bindings: bindingCount,
        events: eventCount,
        processes: world.processes.launches,
        requests: world.network.requests,
        restarts: this.#restarts,
        heals: this.#heals,
        virtualMs: world.timeline.nowMs,
      },
    }
  }

  get #isBroken(): boolean {
    return this.life.violations.length > 0
  }

  async all(steps: Iterable<Step>): Promise<void> {
    await this.life.begin()
    for (const step of steps) {
      if (this.#isBroken) break
      this.#steps += 1
      await this.#do(step)
    }
    if (!this.#isBroken) await this.#heal()
    await this.#end()
  }

  async #do(step: Step): Promise<void> {
    const { world } = this.life
    world.random.reseed(step.seed)
    world.note(`step ${this.#steps} ${step.kind}`)
    if (step.kind === 'heal') await this.#heal()
    else if (step.kind === 'restart') await this.#restart()
    else if (step.kind === 'observe') await this.#observe()
    else await ACTIONS[step.kind](this.life, step)
    if (step.together !== undefined) {
      for (let tick = 0; tick < step.together; tick++) await Promise.resolve()
      return
    }
    await drain()
    if (!this.#isBroken) this.#checks.afterStep()
  }

  async #observe(): Promise<void> {
    await drain()
    const before = this.#checks.spawnsAndRequests()
    look(this.life)
    look(this.life)
    await drain()
    // What planning reads of the disk takes a moment; what others set in motion is not blamed on it.
    const after = this.#checks.spawnsAndRequests()
    if (before !== after) this.life.violate('looking starts nothing', `${before}; afterwards ${after}`)
  }

  /** Every server is well again: so must the host be, within a while. */
  async #heal(): Promise<void> {
    const { life } = this
    const { world, host } = life
    this.#heals += 1
    for (const program of world.programs.all) program.mood = 'good'
    world.env['TOKEN'] = 'one'
    world.isDiskBroken = false
    await world.until(() => life.configuring === 0, HEALING_MS_MAX)
    // Longer than any start, call or pause that is under way.
    await world.pass(RETRY_MS)
    // Variables may have changed: whoever needs them gets a new connection, and so does whoever was refused.
    life.track('refresh', host.refresh(), { msMax: HEALING_MS_MAX })
    await this.#rest()
    const servers = host.statuses.filter(({ state }) => state !== 'disabled').map(({ name }) => name)
    life.track('whenSettled', host.whenSettled({ servers }), { msMax: HEALING_MS_MAX })
    await this.#rest()
    this.#checks.afterStep()
    for (const { name, state, reason } of host.statuses)
      if (state !== 'ready' && state !== 'disabled')
        life.violate('what is well again comes back', `${name} is ${state}: ${reason?.message}`)
    await this.#compare()
  }

  /** Nobody waits for anything, and nothing is starting. */
  async #rest(): Promise<void> {
    const { waiting, host, world } = this.life
    const isAtRest = (): boolean =>
      waiting.size === 0 && host.statuses.every(({ state }) => state !== 'starting' && state !== 'installing')
    await world.until(isAtRest, HEALING_MS_MAX)
  }

  /** A binding of a host at rest shows exactly what the model says. */
  async #compare(): Promise<void> {
    const { life } = this
    const binding = await this.#bound()
    if (binding === undefined) return life.violate('every caller is answered', 'bind() at rest did not settle')
    for (const wanted of life.published.values()) {
      if (!wanted.enabled) continue
      const program = life.world.programs.of(programKey(wanted))
      const shown = binding.tools.filter(({ server }) => server === wanted.name)
      const names = shown.map(({ rawName }) => rawName)
      const revision = this.#listedBy(binding, wanted.name) ?? program.revision
      const listing = program.listings[revision] ?? []
      if (
        !same(
          listing.filter((tool) => allows(wanted, tool)),
          names,
        )
      )
        life.violate('a binding shows what the server lists, filtered', `${wanted.name} shows ${names.join(' ')}`)
      if (shown.some(({ description }) => description?.endsWith(` revision ${revision}`) !== true))
        life.violate('a binding shows the last listing', `${wanted.name} has listed ${revision}`)
    }
    await binding[Symbol.asyncDispose]()
  }

  /** The revision that the ready server behind a binding has listed last. */
  #listedBy({ statuses }: Pick<Binding, 'statuses'>, server: string): number | undefined {
    const { processes, network } = this.life.world
    const instance = statuses.find(({ name }) => name === server)?.serverInfo?.['version']
    const brain =
      processes.servers.find(({ number }) => `pid ${number}` === instance)?.brain ??
      network.clients.find((client) => client.instance === instance)?.brain
    return brain?.listedRevision
  }

  async #bound(): Promise<Binding | undefined> {
    let taken: Binding | undefined
    void this.life.host.bind().then((binding) => {
      taken = binding
    })
    await this.life.world.until(() => taken !== undefined, HEALING_MS_MAX)
    return taken
  }

  async #restart(): Promise<void> {
    this.#restarts += 1
    await this.#end()
    if (!this.#isBroken) await this.life.begin()
  }

  /** Half of the callers never say that they are done: a close ends everything all the same. */
  async #end(): Promise<void> {
    const { life } = this
    await life.end()
    if (!this.#isBroken) this.#checks.atEnd()
    await life.world.pass(AFTERMATH_MS)
    if (!this.#isBroken) this.#checks.afterEnd()
    life.bindings.length = 0
    life.dedicated.clear()
    life.capturing.clear()
    life.configuring = 0
  }
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return [...one].sort().join(' ') === [...other].sort().join(' ')
}
