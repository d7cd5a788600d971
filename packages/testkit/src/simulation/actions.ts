// What each kind of step does. Nothing here waits: what a caller waits for is tracked, and settles while later steps run.
import { type Binding, type CallOutcome, type CatalogTool, HostError, type ServerStatus } from '@convoke/host'
import { claimOf, untruthIn } from './call-truth.ts'
import { type HeldBinding, type HeldCall, holdBinding, instanceOf } from './held.ts'
import { type Dedicated, type Life, programKey } from './life.ts'
import { MOODS, type Mood } from './programs.ts'
import type { Step, StepKind } from './steps.ts'
import { allows, definitionOf, NAMES, TOOL_TOTAL_TIMEOUT_MS, type WantedServer, wantedServer } from './wanted.ts'

type Action = (life: Life, step: Step) => void | Promise<void>

const BINDINGS_MAX = 6
const DEDICATED_MAX = 3
/** Starts, ends and their timeouts one after the other: what waits longer than this waits for nothing. In ms. */
const PATIENCE_MS = 240_000
const CALL_PATIENCE_MS = TOOL_TOTAL_TIMEOUT_MS + 60_000

/** By kind; `heal` and `restart` are for the loop, because whole lives depend on them. */
export const ACTIONS: Readonly<Record<Exclude<StepKind, 'heal' | 'restart'>, Action>> = {
  run: (life, { a }) => life.world.run(1 + (a % 5)),
  pass: (life, { a }) => life.world.pass(1 + (a % 700)),
  jump: (life, { a }) => life.world.pass(5_000 + (a % 90_000)),
  bind,
  dispose,
  call,
  'call-direct': callDirect,
  'call-prepared': callPrepared,
  abort,
  list,
  'list-tools': listTools,
  'configure-add': (life, step) => {
    const free = NAMES.filter((name) => !life.wanted.has(name))
    const name = free[step.a % Math.max(1, free.length)]
    if (name !== undefined) configure(life, wantedServer(name))
  },
  'configure-remove': (life, step) => {
    const server = life.serverOf(step, life.wanted)
    if (server !== undefined && life.wanted.size > 1) configure(life, server, 'remove')
  },
  'configure-filter': (life, step) => change(life, step, filterOf(step)),
  'configure-target': (life, step) => change(life, step, { variant: step.b % 3 }),
  'configure-toggle': (life, step) => change(life, step, { enabled: step.b % 3 !== 0 }),
  'configure-options': (life, step) => change(life, step, optionsOf(step)),
  refresh,
  reconnect,
  'reconnect-next': (life) => life.host.reconnectOnNextRefresh(),
  'wait-settled': waitSettled,
  'require-ready': (life) => life.track('requireReady', life.host.requireReady(), { msMax: PATIENCE_MS }),
  'cancel-startup': (life) => life.host.cancelStarts(),
  observe: (life) => {
    look(life)
  },
  'open-dedicated': openDedicated,
  'close-dedicated': closeDedicated,
  mood: (life, step) => {
    const { programs, random } = life.world
    const program = programs.all[step.a % Math.max(1, programs.all.length)]
    if (program !== undefined) program.mood = random.weighted<Mood>(MOODS)
  },
  crash: (life, step) => {
    const { servers } = life.world.processes
    servers[step.a % Math.max(1, servers.length)]?.exit(
      step.b % 2 === 0 ? 1 : null,
      step.b % 2 === 0 ? null : 'SIGKILL',
    )
  },
  'change-tools': changeTools,
  forget: (life, step) => {
    const { programs, network } = life.world
    const program = programs.all[step.a % Math.max(1, programs.all.length)]
    if (program !== undefined) network.forgetSessions(program)
  },
  cut: (life, step) => {
    const { programs, network } = life.world
    const program = programs.all[step.a % Math.max(1, programs.all.length)]
    if (program !== undefined) network.cut(program)
  },
  variable: (life, { a }) => {
    const values = [undefined, 'one', 'two']
    life.world.env['TOKEN'] = values[a % values.length]
  },
  policy: (life, { a }) => {
    life.trust = { approvals: a % 2 === 0 ? 'ask' : 'never', fullAccess: a % 3 === 0 }
    life.host.replaceTrust({ trust: life.trust })
  },
  account: (life, { a }) => life.signIn(a % 4 === 0 ? undefined : { id: `user-${a % 3}`, grant: `grant-${a}` }),
  disk: (life, { a }) => {
    life.world.isDiskBroken = a % 3 === 0
  },
}

/** Everything that only looks. */
export function look(life: Life): readonly ServerStatus[] {
  const { host } = life
  host.questions()
  life.track('plan', host.plan(life.definitions), { msMax: PATIENCE_MS })
  const others = [...life.wanted.values()].slice(1).map((server) => definitionOf({ ...server, variant: 2 }))
  life.track('plan of something else', host.plan(others), { msMax: PATIENCE_MS })
  return host.statuses
}

function bind(life: Life, { a, b }: Step): void {
  const names = [...life.published.keys()]
  const required = a % 6 === 0 ? names.slice(0, 1 + (b % 2)) : []
  const wanted = life.published
  const capture = { wanted }
  life.capturing.add(capture)
  const binding = life.host.bind({
    ...(required.length === 0 ? {} : { requiredServers: required }),
    ...(b % 3 === 0 ? { grace: 'none' as const } : {}),
  })
  life.track('bind', binding, {
    msMax: PATIENCE_MS,
    failed: () => life.capturing.delete(capture),
    done: (taken: Binding) => {
      life.capturing.delete(capture)
      life.bindingCount += 1
      const facts = { number: life.bindingCount, takenAtMs: life.world.timeline.nowMs, wanted }
      life.bindings.push(holdBinding(taken, facts))
      life.world.note(`binding ${life.bindingCount}: ${taken.tools.length} tools`)
      if (life.bindings.length > BINDINGS_MAX) release(life, life.bindings[0] as HeldBinding)
    },
  })
}

function dispose(life: Life, { a }: Step): void {
  const held = life.bindings[a % Math.max(1, life.bindings.length)]
  if (held !== undefined) release(life, held)
}

function release(life: Life, held: HeldBinding): void {
  life.bindings.splice(life.bindings.indexOf(held), 1)
  life.track('dispose of a binding', Promise.resolve(held.binding[Symbol.asyncDispose]()), {
    msMax: PATIENCE_MS,
    failed: (error) => life.violate('a binding can be disposed of', String(error)),
  })
}

function call(life: Life, { a, b }: Step): void {
  const held = life.bindings[a % Math.max(1, life.bindings.length)]
  // Calls that may be repeated have the most ways to go wrong.
  const tool = (b % 4 === 0 ? idempotentOf(held, a) : undefined) ?? held?.tools[b % Math.max(1, held.tools.length)]
  if (held === undefined || tool === undefined) return
  const mine = newCall(life, held, tool)
  const timeoutMs = b % 5 === 0 ? 20 + (a % 3_000) : undefined
  const outcome = held.binding.call(
    tool,
    { token: mine.token },
    { signal: mine.abort.signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
  )
  follow(life, mine, outcome)
}

/** Whoever has prepared a call may think about its arguments while the world goes on; until then it holds what it was shown with. */
function callPrepared(life: Life, { a, b }: Step): void {
  const held = life.bindings[a % Math.max(1, life.bindings.length)]
  const tool = held?.tools[b % Math.max(1, held.tools.length)]
  const prepared = tool === undefined ? undefined : held?.binding.prepare(tool)
  if (held === undefined || tool === undefined || prepared === undefined) return
  const { timeline } = life.world
  const mine = newCall(life, held, tool)
  const capture = { wanted: held.wanted }
  life.capturing.add(capture)
  const args = { token: mine.token }
  const thought = (): Promise<{ args: { token: number } }> =>
    new Promise((resolve) => timeline.later(0, 1 + (a % 900), () => resolve({ args })))
  const outcome = prepared.run(thought, { signal: mine.abort.signal })
  const released = outcome.finally(async () => {
    await prepared[Symbol.asyncDispose]()
    life.capturing.delete(capture)
  })
  follow(life, mine, released)
}

function idempotentOf(held: HeldBinding | undefined, a: number): CatalogTool | undefined {
  const tools = held?.tools.filter(({ rawName }) => rawName === 'idem') ?? []
  return tools[(a >> 8) % Math.max(1, tools.length)]
}

function newCall(life: Life, held: HeldBinding, { server, rawName }: CatalogTool): HeldCall {
  const wanted = held.wanted.get(server)
  life.callCount += 1
  const mine: HeldCall = {
    token: life.callCount,
    server,
    tool: rawName,
    isIdempotent: rawName === 'idem',
    instance: instanceOf(held, server),
    program: wanted === undefined ? '' : programKey(wanted),
    isAllowed: wanted === undefined || allows(wanted, rawName),
    abort: new AbortController(),
    told: 'nothing yet',
  }
  life.calls.set(mine.token, mine)
  life.world.note(`call #${mine.token} ${server}/${rawName} by binding ${held.number}`)
  return mine
}

function follow(life: Life, mine: HeldCall, outcome: Promise<CallOutcome>): void {
  life.track(`call #${mine.token}`, outcome, {
    msMax: CALL_PATIENCE_MS,
    done: (end) => {
      life.world.note(`#${mine.token} ${end.kind}${'error' in end ? ` ${end.error.code}` : ''}`)
      mine.told = claimOf(end)
      const untruth = untruthIn(end, mine, life.world.ledger.of(mine.token))
      if (untruth !== undefined) life.violate('a settled call was told truthfully', untruth)
      life.settled(mine)
    },
    failed: (error) => life.violate('every end of a call is an outcome', `#${mine.token} threw ${String(error)}`),
  })
}

function callDirect(life: Life, step: Step): void {
  const server = life.serverOf(step)
  if (server === undefined) return
  life.callCount += 1
  const tool = ['add', 'find', 'idem'][step.b % 3] as string
  const mine: HeldCall = {
    token: life.callCount,
    server: server.name,
    tool,
    isIdempotent: tool === 'idem',
    instance: undefined,
    program: programKey(server),
    isAllowed: allows(server, tool),
    abort: new AbortController(),
    told: 'nothing yet',
  }
  life.calls.set(mine.token, mine)
  const outcome = life.host.callTool({
    server: server.name,
    tool,
    args: { token: mine.token },
    wait: step.b % 2 === 0 ? 'ready' : 'no',
    signal: mine.abort.signal,
  })
  life.track(`direct call #${mine.token}`, outcome, {
    msMax: CALL_PATIENCE_MS + PATIENCE_MS,
    done: (end) => {
      mine.told = claimOf(end)
      const untruth = untruthIn(end, mine, life.world.ledger.of(mine.token))
      if (untruth !== undefined) life.violate('a settled call was told truthfully', untruth)
      life.settled(mine)
    },
  })
}

function abort(life: Life, { a }: Step): void {
  const open = [...life.calls.values()].filter(({ told }) => told === 'nothing yet')
  open[a % Math.max(1, open.length)]?.abort.abort()
}

function list(life: Life, { a }: Step): void {
  const held = life.bindings[a % Math.max(1, life.bindings.length)]
  if (held !== undefined) life.track('a listing', held.binding.resources(), { msMax: PATIENCE_MS })
}

function listTools(life: Life): void {
  life.track('listTools', life.host.listTools(), {
    msMax: PATIENCE_MS,
    failed: (error) => {
      if (!HostError.is(error, 'HOST_CLOSED'))
        life.violate('every caller is answered', `listTools failed: ${String(error)}`)
    },
  })
}

function change(life: Life, step: Step, to: Partial<WantedServer>): void {
  const server = life.serverOf(step, life.wanted)
  if (server === undefined) return
  const { allow: _allow, deny: _deny, ...rest } = server
  configure(life, 'allow' in to || 'deny' in to ? { ...rest, ...to } : { ...server, ...to })
}

function filterOf({ b }: Step): Partial<WantedServer> {
  const tools = ['add', 'find', 'read', 'send', 'stop', 'idem'].filter((_, at) => (b >> at) % 2 === 1)
  return b % 3 === 0 ? { allow: tools } : b % 3 === 1 ? { deny: tools } : { allow: ['add', 'idem'], deny: tools }
}

function optionsOf({ b }: Step): Partial<WantedServer> {
  const approvalMode = (['auto', 'writes', 'prompt', 'approve'] as const)[(b >> 4) % 4] ?? 'auto'
  return { required: b % 4 === 0, eager: (b >> 2) % 2 === 0, usesToken: (b >> 3) % 5 === 0, approvalMode }
}

/** A new configuration. */
function configure(life: Life, server: WantedServer, what: 'set' | 'remove' = 'set'): void {
  const next = new Map(life.wanted)
  if (what === 'remove') next.delete(server.name)
  else next.set(server.name, server)
  life.wanted = next
  life.world.note(`configure ${what} ${JSON.stringify(server)}`)
  life.configuring += 1
  life.track('configure', life.host.configure(life.definitions), {
    msMax: PATIENCE_MS,
    done: () => {
      life.configuring -= 1
      // A first listing is no change, so what was told before is not what there was before.
      life.toldRevisions.delete(server.name)
    },
    failed: (error) => {
      life.configuring -= 1
      if (!HostError.is(error, 'HOST_CLOSED')) life.violate('a valid configuration is taken', String(error))
    },
  })
}

function refresh(life: Life): void {
  life.track('refresh', life.host.refresh(), {
    msMax: PATIENCE_MS,
    failed: (error) => {
      if (!HostError.is(error, 'HOST_CLOSED'))
        life.violate('a refresh does not fail for what a server does', String(error))
    },
  })
}

function reconnect(life: Life, step: Step): void {
  const server = life.serverOf(step)
  if (server === undefined) return
  life.world.note(`reconnect ${server.name}`)
  life.track(`reconnect ${server.name}`, life.host.reconnect(server.name), { msMax: PATIENCE_MS })
}

function waitSettled(life: Life, { a, b }: Step): void {
  const names = [...life.published.keys()].filter((_, at) => (a >> at) % 2 === 1)
  const options = {
    ...(b % 3 === 0 ? { waitMs: b % 3_000 } : {}),
    ...(b % 2 === 0 ? { servers: names } : {}),
  }
  life.track('whenSettled', life.host.whenSettled(options), { msMax: PATIENCE_MS })
}

function openDedicated(life: Life, step: Step): void {
  const server = life.serverOf(step)
  if (server === undefined || life.dedicated.size >= DEDICATED_MAX) return
  const mine: Dedicated = { program: programKey(server), port: undefined, isOver: false }
  life.dedicated.add(mine)
  const opening = life.host.openDedicated(server.name, { capabilities: {} })
  life.track('openDedicated', opening, {
    msMax: PATIENCE_MS,
    done: (port) => {
      mine.port = port
    },
    failed: () => life.dedicated.delete(mine),
  })
}

function closeDedicated(life: Life, { a }: Step): void {
  const open = [...life.dedicated].filter(({ port, isOver }) => port !== undefined && !isOver)
  const mine = open[a % Math.max(1, open.length)]
  if (mine?.port === undefined) return
  mine.isOver = true
  const forget = (): void => void life.dedicated.delete(mine)
  life.track('close of a dedicated connection', Promise.resolve(mine.port[Symbol.asyncDispose]()), {
    msMax: PATIENCE_MS,
    done: forget,
    failed: forget,
  })
}

function changeTools(life: Life, { a, b }: Step): void {
  const { programs, processes, network, random } = life.world
  const program = programs.all[a % Math.max(1, programs.all.length)]
  if (program === undefined) return
  program.change(random)
  if (b % 8 === 0) return // a server that does not tell
  for (let notice = 0; notice < 1 + (b % 3); notice++) {
    for (const server of processes.servers) if (server.program === program) server.announce()
    network.announce(program)
  }
}
