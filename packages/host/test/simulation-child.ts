// The whole host in a simulated world: random walks that must break nothing, and one lie or fault for each invariant, which must not go unseen.
// A process of its own: a test runner answers every `import()` of the host in real time, and the simulated clock does not wait for that.
import {
  definitionOf,
  INVARIANTS,
  type Invariant,
  type Life,
  type SimulationResult,
  type Step,
  type StepKind,
  simulate,
  stepsOf,
  type WantedServer,
  wantedServer,
} from '../../testkit/src/simulation/index.ts'
import { type Binding, defineServer, type Host, HostError, type ServerStatus } from '../src/index.ts'

const SEEDS = [1, 2, 3, 4, 5]
const STEPS_PER_SEED = 2_000
const STEPS_AGAIN = 600

/** What this process prints, as JSON. */
export interface SimulationReport {
  readonly walks: readonly SimulationResult[]
  /** Two runs of one seed, and one of another. */
  readonly again: readonly [SimulationResult, SimulationResult, SimulationResult]
  /** What each sabotage broke, by the invariant that it is for. */
  readonly broken: Readonly<Record<string, readonly string[]>>
}

/** A list of steps that may do in between what no step does. */
type Sabotage = (life: Life) => Generator<Step>

function step(kind: StepKind, a = 0, b = 1): Step {
  return { kind, a, b, seed: 1 }
}

/** Every server is ready, or has failed. */
function* settled(): Generator<Step> {
  yield step('jump')
  yield step('jump')
}

/** With these parts instead of its own. */
function lying<T extends object>(honest: T, lies: Partial<T>): T {
  return new Proxy(honest, {
    get: (target, key) => {
      if (Object.hasOwn(lies, key)) return Reflect.get(lies, key)
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function lie(life: Life, lies: (host: Host) => Partial<Host>): void {
  life.disguise((host) => lying(host, lies(host)))
}

/** The statuses are these from now on. */
function lieAboutStatuses(life: Life, change: (status: ServerStatus) => ServerStatus): void {
  const honest = life.host
  life.disguise((host) =>
    lying(host, {
      get statuses() {
        return honest.statuses.map(change)
      },
    }),
  )
}

function lieAboutBindings(life: Life, lies: (binding: Binding) => Partial<Binding>): void {
  lie(life, (host) => ({
    bind: async (request) => {
      const binding = await host.bind(request)
      return lying(binding, lies(binding))
    },
  }))
}

function lieAboutDefinitions(life: Life, changes: Partial<WantedServer>): void {
  const definitions = [...life.published.values()].map((wanted) => definitionOf({ ...wanted, ...changes }))
  lie(life, () => ({ definitions }))
}

/** A process that nobody of the host has started. */
function spawn({ world }: Life, name: string): void {
  const spec = { command: `sim-${name}`, args: ['v0'], env: {} }
  world.processes.spawn(spec, world.programs.of(`sim-${name}/v0`))
}

/** A call that the servers know of, as it would be if the host had sent it. */
function arrive(life: Life, facts: { instance?: string; isAllowed?: boolean; isLost?: boolean }): void {
  const { instance, isAllowed = true, isLost = false } = facts
  life.calls.set(-1, {
    token: -1,
    server: 's0',
    tool: 'add',
    isIdempotent: false,
    instance,
    program: 'sim-s0/v0',
    isAllowed,
    abort: new AbortController(),
    told: isLost ? 'did not run' : 'nothing yet',
  })
  life.world.ledger.arrived(-1, { instance: 'pid 1', tool: 'add', atMs: 0 })
}

function tell(life: Life, changes: Partial<ServerStatus>): void {
  const [status] = life.host.statuses
  if (status !== undefined) life.hear({ kind: 'server.state-changed', status: { ...status, ...changes } })
}

const FAILED = { state: 'failed', reason: { code: 'START_FAILED', message: 'Simulated' } } as unknown as ServerStatus

/** One for each invariant; a missing one does not compile. */
const SABOTAGES: Readonly<Record<Invariant, Sabotage>> = {
  *'no process is without an owner'(life) {
    spawn(life, 'stray')
    yield step('run')
  },
  *'no connection is without an owner'(life) {
    life.world.network.connect(new URL('http://stray.sim/v0'))
    yield step('run')
    yield step('jump', 5_000)
  },
  *'a process that is ended ends'(life) {
    yield* settled()
    const [server] = life.world.processes.servers
    if (server === undefined) return
    server.exit = () => {}
    server.signal('SIGTERM')
    yield step('jump', 20_000)
  },
  *'an old process is gone before the next one starts'(life) {
    yield* settled()
    const server = life.world.processes.servers.find(({ program }) => program.key === 'sim-s0/v0')
    server?.signal('SIGTERM')
    spawn(life, 's0')
    yield step('run')
  },
  *'no event comes before the publication'(life) {
    tell(life, { name: 'nobody' })
    yield step('run')
  },
  *'an event tells what is published'(life) {
    tell(life, FAILED)
    yield step('run')
  },
  *'a catalog changes only with its content'(life) {
    const told = { kind: 'tool-catalog.changed', server: 's0', revision: 'one' } as const
    life.hear(told as never)
    life.hear(told as never)
    yield step('run')
  },
  *'no call is rerouted'(life) {
    arrive(life, { instance: 'pid 2' })
    yield step('run')
  },
  *'no call is run twice'(life) {
    yield* settled()
    lieAboutBindings(life, (binding) => ({
      call: async (tool, args, options) => {
        await binding.call(tool, args, options)
        return binding.call(tool, args, options)
      },
    }))
    yield step('bind', 1)
    yield* settled()
    for (let count = 0; count < 6; count++) yield step('call', 0, 4 * count + 1)
    yield* settled()
  },
  *'the configured filter holds for calls'(life) {
    arrive(life, { isAllowed: false })
    yield step('run')
  },
  *'a binding never changes'(life) {
    yield* settled()
    lieAboutBindings(life, (binding) => ({
      get tools() {
        return [...binding.tools]
      },
    }))
    yield step('bind', 1)
    yield* settled()
  },
  *'a binding can be disposed of'(life) {
    yield* settled()
    lieAboutBindings(life, () => ({ [Symbol.asyncDispose]: () => Promise.reject(new Error('Simulated')) }))
    yield step('bind', 1)
    yield* settled()
    yield step('dispose')
  },
  *'a revision stands for one content'(life) {
    yield* settled()
    yield step('bind', 1)
    yield* settled()
    for (const { revision } of life.bindings) life.revisions.set(revision, 'other tools')
    yield step('bind', 1)
  },
  *'a revision changes only with the content'(life) {
    yield* settled()
    yield step('bind', 1)
    yield* settled()
    for (const { tools } of life.bindings) life.revisions.set(JSON.stringify(tools), 'another revision')
    yield step('bind', 1)
  },
  *'the configured filter holds for listings'(life) {
    lieAboutDefinitions(life, { allow: [] })
    yield* settled()
    yield step('bind', 1)
    yield* settled()
  },
  *'one start per identity'(life) {
    lieAboutStatuses(
      life,
      (status) => ({ ...status, state: 'starting', reason: { code: 'STARTING', message: 'Simulated' } }) as never,
    )
    spawn(life, 's0')
    spawn(life, 's0')
    yield step('run')
  },
  *'one recovery for all who need it'(life) {
    const client = life.world.network.connect(new URL('http://h0.sim/v0'))
    const opening = { opens: true, forget: () => {} }
    Reflect.get(client, 'exchanges').add(opening)
    Reflect.get(client, 'greet').call(client, { opens: true })
    Reflect.get(client, 'exchanges').delete(opening)
    yield step('run')
  },
  *'every state that is not ready has a reason'(life) {
    lieAboutStatuses(life, ({ reason: _reason, ...status }) => ({ ...status, state: 'starting' }))
    yield step('run')
  },
  *'a status does not lie'(life) {
    yield* settled()
    const before = life.host.statuses
    for (const server of life.world.processes.servers) server.exit(1, null)
    yield* settled()
    lieAboutStatuses(life, (status) => before.find(({ name }) => name === status.name) ?? status)
    yield step('jump', 5_000)
  },
  *'every start comes to an end'(life) {
    const sinceAtMs = life.world.dateMs - 100_000
    lieAboutStatuses(life, (status) => ({ ...status, state: 'starting', sinceAtMs }))
    yield step('run')
  },
  *'looking starts nothing'(life) {
    lie(life, () => ({
      questions: () => {
        spawn(life, 's0')
        return []
      },
    }))
    yield step('observe')
  },
  *'a settled call was told truthfully'(life) {
    yield* settled()
    lieAboutBindings(life, (binding) => ({
      call: async (tool, args, options) => {
        await binding.call(tool, args, options)
        return {
          kind: 'failed',
          error: new HostError('CONNECTION_LOST', 'Simulated', { details: { sent: false } }),
        } as never
      },
    }))
    yield step('bind', 1)
    yield* settled()
    for (let count = 0; count < 6; count++) yield step('call', 0, 4 * count + 1)
    yield* settled()
  },
  *'every end of a call is an outcome'(life) {
    yield* settled()
    lieAboutBindings(life, () => ({ call: () => Promise.reject(new Error('Simulated')) }))
    yield step('bind', 1)
    yield* settled()
    yield step('call')
  },
  *'every caller is answered'(life) {
    life.track('what never comes', new Promise(() => {}), { msMax: 1_000 })
    yield step('jump')
  },
  // biome-ignore lint/correctness/useYield: nothing has to happen afterwards
  *'no failure goes unheard'() {
    process.listeners('unhandledRejection').at(-1)?.(new Error('Simulated'), Promise.resolve())
  },
  *'a close ends'(life) {
    lie(life, (host) => ({
      close: async () => {
        await host.close()
        throw new Error('Simulated')
      },
    }))
    yield step('run')
  },
  *'no process is left after the close'(life) {
    life.world.processes.add({ command: 'stray', env: {} })
    yield step('run')
  },
  *'nothing is left after the close'(life) {
    life.world.timeline.setTimer(() => {}, 1_000_000)
    yield step('run')
  },
  // biome-ignore lint/correctness/useYield: it ends before it could do anything
  *'the simulation itself works'() {
    throw new Error('Simulated')
  },
  *'a host can be made'(life) {
    life.wanted.set('again', wantedServer('s0'))
    yield step('restart')
  },
  *'a valid configuration is taken'(life) {
    lie(life, () => ({ configure: () => Promise.reject(new Error('Simulated')) }))
    yield step('configure-filter')
  },
  *'a refresh does not fail for what a server does'(life) {
    lie(life, () => ({ refresh: () => Promise.reject(new Error('Simulated')) }))
    yield step('refresh')
  },
  *'what is published is what was configured'(life) {
    life.wanted.delete('s0')
    yield step('run')
  },
  *'a changed server is replaced'(life) {
    yield* settled()
    lieAboutDefinitions(life, { variant: 2 })
    yield step('run')
  },
  *'what is well again comes back'(life) {
    yield* settled()
    lieAboutStatuses(life, (status) => ({ ...status, ...FAILED, name: status.name }))
    yield step('heal')
  },
  *'a binding shows what the server lists, filtered'(life) {
    yield* settled()
    lieAboutBindings(life, ({ tools }) => ({ tools: tools.slice(1) }))
    yield step('heal')
  },
  *'a binding shows the last listing'(life) {
    yield* settled()
    lieAboutBindings(life, ({ tools }) => ({ tools: tools.map((tool) => ({ ...tool, description: 'old' })) }))
    yield step('heal')
  },
  *'a token goes only to its origins'(life) {
    const { host } = life
    // A definition that nobody should write: the token of the account, by hand, to another server.
    const transport = { kind: 'http', url: 'http://h0.sim/v0', headers: { authorization: 'Bearer grant-1' } } as const
    void host.configure([defineServer({ name: 'h0', transport: { ...transport, envHeaders: {} } })])
    yield* settled()
  },
  *'nobody is asked when the policy says never'(life) {
    yield* settled()
    for (const program of life.world.programs.all) program.act = () => 'ask'
    life.trust = { ...life.trust, approvals: 'never' }
    yield step('bind', 1)
    yield* settled()
    for (let count = 0; count < 6; count++) yield step('call', 0, 4 * count + 1)
    yield* settled()
  },
}

/** Everything that a run of this sabotage finds. */
async function brokenBy(sabotage: Sabotage): Promise<readonly string[]> {
  const lives: Life[] = []
  function* steps(): Generator<Step> {
    for (const life of lives) yield* sabotage(life)
  }
  await simulate(steps(), { seed: 1, begun: (life) => lives.push(life) })
  return lives.flatMap(({ violations }) => violations.map(({ invariant }) => invariant))
}

async function walk(seed: number, count: number): Promise<SimulationResult> {
  return simulate(stepsOf(seed, count), { seed })
}

async function report(): Promise<SimulationReport> {
  // What is loaded on demand is loaded before the clock runs: reading a file takes real time.
  await walk(0, 300)
  const walks: SimulationResult[] = []
  for (const seed of SEEDS) walks.push(await walk(seed, STEPS_PER_SEED))
  const broken: Record<string, readonly string[]> = {}
  for (const invariant of Object.values(INVARIANTS).flat()) broken[invariant] = await brokenBy(SABOTAGES[invariant])
  const again = [await walk(7, STEPS_AGAIN), await walk(7, STEPS_AGAIN), await walk(8, STEPS_AGAIN)] as const
  return { walks, again: [...again], broken }
}

process.stdout.write(JSON.stringify(await report()))
