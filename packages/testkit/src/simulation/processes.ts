// Processes that are not real: their pipes are Node streams, their table is a map, and every end that a process can have is here.
import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import type { ChildProcessPort, ProcessFacts, ProcessTable, SpawnSpec } from '@convoke/wire'
import type { Program } from './programs.ts'
import { type Incoming, ServerBrain, type ServerLine, type ServerWorld } from './server-brain.ts'
import { Pipe } from './timeline.ts'

const LEASE = 'CONVOKE_LEASE'
/** What a process may do when it is asked to end. */
type Ending = 'at-end-of-input' | 'at-term' | 'only-killed'

/** A process of the simulated machine. */
export interface SimulatedProcess {
  readonly facts: ProcessFacts
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  /** Undefined for what is no server: a grandchild, a process of an earlier host. */
  readonly server?: ServerProcess
  signal(signal: NodeJS.Signals): void
}

/** Every process of the machine. */
export class SimulatedProcesses implements ProcessTable {
  readonly readsEnvironments = true
  readonly #world: ServerWorld
  readonly #running = new Map<number, SimulatedProcess>()
  #lastPid = 1_000
  /** How many processes were ever started. */
  launches = 0
  /** Told before each start of a server. */
  onSpawn: (program: Program) => void = () => {}

  constructor(world: ServerWorld) {
    this.#world = world
  }

  get running(): readonly SimulatedProcess[] {
    return [...this.#running.values()]
  }
  get servers(): readonly ServerProcess[] {
    return this.running.flatMap(({ server }) => (server === undefined ? [] : [server]))
  }

  facts(pid: number): ProcessFacts | undefined {
    return this.#running.get(pid)?.facts
  }
  all(): readonly ProcessFacts[] {
    return this.running.map(({ facts }) => facts)
  }
  variable(pid: number, name: string): string | undefined {
    return this.#running.get(pid)?.env[name]
  }
  carrying(name: string): readonly { pid: number; value: string }[] {
    return this.running.flatMap(({ facts, env }) => {
      const value = env[name]
      return value === undefined ? [] : [{ pid: facts.pid, value }]
    })
  }
  command(pid: number): string {
    return this.#running.get(pid)?.command ?? ''
  }
  place(): string {
    return 'simulated'
  }

  /** A process that is simply there: the host itself, or what somebody left. */
  add(options: Pick<SimulatedProcess, 'command' | 'env'> & { group?: number; signal?: (pid: number) => void }): number {
    const pid = ++this.#lastPid
    const facts = this.#facts(pid, options.group ?? pid)
    this.#running.set(pid, {
      facts,
      command: options.command,
      env: options.env,
      signal: () => (options.signal === undefined ? this.remove(pid) : options.signal(pid)),
    })
    return pid
  }

  remove(pid: number): void {
    this.#running.delete(pid)
  }

  kill(pid: number, signal: NodeJS.Signals | 0, to: 'process' | 'group'): boolean {
    const targets = this.running.filter(({ facts }) => (to === 'group' ? facts.groupId === pid : facts.pid === pid))
    if (signal !== 0) {
      this.#world.note(`kill ${pid} ${signal} ${to}`)
      for (const target of targets) target.signal(signal)
    }
    return targets.length > 0
  }

  spawn(spec: SpawnSpec, program: Program): ChildProcessPort {
    this.launches += 1
    this.onSpawn(program)
    const pid = ++this.#lastPid
    const server = new ServerProcess(this.#world, program, { pid, spec, table: this })
    if (server.beginning === 'spawn-error') {
      this.#world.note(`spawn ${program.key} fails`)
      return server.failToStart()
    }
    this.#world.note(`spawn ${program.key} as ${pid} (${server.beginning})`)
    this.#running.set(pid, {
      facts: this.#facts(pid, pid),
      command: `${spec.command} ${spec.args.join(' ')}`,
      env: spec.env,
      server,
      signal: (signal) => server.signal(signal),
    })
    server.begin()
    return server
  }

  #facts(pid: number, groupId: number): ProcessFacts {
    return { pid, parentPid: 1, groupId, startedAt: String(this.#world.timeline.nowMs), zombie: false }
  }
}

interface ServerProcessInit {
  readonly pid: number
  readonly spec: SpawnSpec
  readonly table: SimulatedProcesses
}

/** One server as a process. */
export class ServerProcess extends EventEmitter implements ChildProcessPort {
  pid: number | undefined
  readonly number: number
  readonly program: Program
  readonly brain: ServerBrain
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly startedAtMs: number
  exited = false
  readonly #world: ServerWorld
  readonly #init: ServerProcessInit
  readonly #line: ServerLine
  readonly #ending: Ending
  #inbox = ''
  #endingAtMs: number | undefined
  readonly #input: Pipe
  readonly #output: Pipe
  /** Somebody else holds its output open for a while after its end. */
  #grandchild: number | undefined

  constructor(world: ServerWorld, program: Program, init: ServerProcessInit) {
    super()
    const { random } = world
    this.#world = world
    this.#init = init
    this.program = program
    this.number = init.pid
    this.pid = init.pid
    this.startedAtMs = world.timeline.nowMs
    this.#input = new Pipe(world.timeline)
    this.#output = new Pipe(world.timeline)
    this.brain = new ServerBrain(world, program, `pid ${init.pid}`)
    this.#ending = random.weighted<Ending>({ 'at-end-of-input': 80, 'at-term': 14, 'only-killed': 6 })
    this.stdin = new Writable({
      write: (chunk: Buffer, _encoding, done) => this.#write(chunk, done),
      final: (done) => {
        this.#inputEnded()
        done()
      },
    })
    this.stdout = new Readable({ read: () => {} })
    this.stderr = new Readable({ read: () => {} })
    this.#line = {
      instance: `pid ${init.pid}`,
      send: (message) => this.#say(message),
      aside: (message) => this.#say(message),
      crash: (half) => this.#crash(half),
    }
  }

  get beginning(): ServerBrain['beginning'] {
    return this.brain.beginning
  }

  /** When its host ended its input, or the first signal came: from then on it is on its way out. */
  get endingAtMs(): number | undefined {
    // What the host has written may still lie before the end of the input.
    if (this.stdin.writableEnded) this.#endingAtMs ??= this.#world.timeline.nowMs
    return this.#endingAtMs
  }

  /** Some programs tell everybody with what they were started. */
  get #told(): string {
    return this.#init.spec.env['API_TOKEN'] ?? ''
  }

  failToStart(): this {
    this.pid = undefined
    const missing = this.#world.random.chance(60)
    const error = Object.assign(new Error(missing ? 'spawn ENOENT' : 'spawn EAGAIN'), {
      code: missing ? 'ENOENT' : 'EAGAIN',
    })
    this.#world.timeline.later(0, 3, () => {
      this.emit('error', error)
      this.stdout.push(null)
      this.stderr.push(null)
    })
    return this
  }

  begin(): void {
    const { random, timeline } = this.#world
    if (random.chance(4))
      this.#grandchild = this.#init.table.add({
        command: 'grandchild',
        env: { [LEASE]: this.#init.spec.env[LEASE] ?? '' },
        ...(random.chance(50) ? { group: this.number } : {}),
        signal: (pid) => timeline.later(1, 30, () => this.#init.table.remove(pid)),
      })
    switch (this.beginning) {
      case 'exit-at-once':
        return timeline.later(0, 20, () => this.exit(1, null))
      case 'noise':
        this.#print(`starting up …\n${random.chance(50) ? '{"jsonrpc":"2.0","id":"nobody","result":{}}\n' : ''}`)
        this.stderr.push(`warning: simulated ${this.#told}\n`)
        return
      default:
        return
    }
  }

  /** Tells its host that its tools changed. */
  announce(): void {
    if (!this.exited) this.brain.announce(this.#line)
  }

  signal(signal: NodeJS.Signals): void {
    this.#endingAtMs ??= this.#world.timeline.nowMs
    if (signal !== 'SIGKILL' && this.#ending === 'only-killed') return
    this.#world.timeline.later(0, signal === 'SIGKILL' ? 2 : 40, () => this.exit(null, signal))
  }

  exit(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.exited) return
    this.exited = true
    this.brain.end()
    this.#init.table.remove(this.number)
    const { timeline, random } = this.#world
    this.#world.note(`exit ${this.number} ${code ?? signal}`)
    if (random.chance(30)) this.stderr.push(`Simulated last words ${this.#told}\n`)
    timeline.later(0, 3, () => {
      this.emit('exit', code, signal)
      this.#closePipes(() => this.emit('close', code, signal))
    })
  }

  /** With the last process that holds them; what was written before is still read. */
  #closePipes(whenRead: () => void): void {
    const holder = this.#grandchild
    const isHeld = holder !== undefined && this.#init.table.facts(holder) !== undefined
    this.#output.put(this.#world.random.below(isHeld ? 900 : 3), () => {
      this.stdout.push(null)
      this.stderr.push(null)
      let open = 2
      const closed = (): void => {
        open -= 1
        if (open === 0) whenRead()
      }
      this.stdout.once('end', closed)
      this.stderr.once('end', closed)
    })
  }

  #write(chunk: Buffer, done: (error?: Error) => void): void {
    const { timeline, random } = this.#world
    if (this.exited) return done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
    this.#input.put(random.below(4), () => this.#read(chunk))
    // A full pipe: the writer hears of it late.
    if (random.chance(4)) timeline.later(1, 200, done)
    else done()
  }

  #read(chunk: Buffer): void {
    if (this.exited) return
    const lines = (this.#inbox + chunk.toString('utf8')).split('\n')
    this.#inbox = lines.pop() ?? ''
    for (const line of lines) {
      if (this.exited) return
      const message = JSON.parse(line) as Incoming
      this.#world.note(`${this.number} reads ${message.method ?? 'answer'} ${message.id ?? ''}`)
      this.brain.receive(message, this.#line)
    }
  }

  #inputEnded(): void {
    const { random } = this.#world
    if (this.#ending !== 'at-end-of-input' || this.exited) return
    this.#input.put(random.below(60), () => this.exit(0, null))
  }

  #say(message: object): void {
    this.#print(`${JSON.stringify(message)}\n`)
  }

  /** Now and then a message comes in two pieces. */
  #print(text: string): void {
    if (this.exited) return
    const { random } = this.#world
    if (text.length < 2 || !random.chance(6)) return this.#put(text)
    const at = random.between(1, text.length - 1)
    this.#put(text.slice(0, at))
    this.#put(text.slice(at))
  }

  #put(text: string): void {
    this.#output.put(this.#world.random.below(4), () => {
      if (!this.stdout.destroyed) this.stdout.push(text)
    })
  }

  #crash(half: object | undefined): void {
    if (half !== undefined) {
      const text = JSON.stringify(half)
      this.#put(text.slice(0, this.#world.random.between(1, text.length - 2)))
    }
    const code = this.#world.random.pick([1, 9, null])
    this.exit(code, code === null ? 'SIGSEGV' : null)
  }
}
