// One race each. The seed of the arena decides who comes first; what must be true is true whoever does.
import type { HostEvent, ServerDefinition } from '../src/index.ts'
import { type Arena, must } from './race-arena.ts'

type Race = (arena: Arena) => Promise<void>

const SECRET = 'secret-4711-abcdef'

/** By the number in the list of the design. */
export const RACES: Readonly<Record<string, Race>> = {
  async 'race.001'(arena) {
    const kept = arena.stdio('s0')
    const host = await arena.start([kept])
    arena.steady('s1')
    const abort = new AbortController()
    const configuring = host.configure([kept, arena.stdio('s1')], { signal: abort.signal })
    configuring.catch(() => {})
    await arena.moment()
    abort.abort()
    const end = await arena.ended(configuring)
    await arena.rest()
    const told = arena.count(/ s1 |sim-s1/)
    if ('error' in end) must(told === 0 && host.statuses.length === 1, 'an abandoned candidate was started or told')
    else must(arena.status('s1').state === 'ready', 'what was published did not start')
    const published = arena.events.findIndex((event) => event.kind === 'set.published' && names(event).includes('s1'))
    const first = arena.events.findIndex((event) => event.kind === 'server.state-changed' && event.status.name === 's1')
    must(first === -1 || (published !== -1 && published < first), 'an event came before the publication')
  },

  async 'race.002'(arena) {
    arena.steady('s0')
    const host = await arena.start([arena.stdio('s0')])
    await arena.rest()
    const before = arena.status('s0').pid
    const abort = new AbortController()
    host.reconnectOnNextRefresh()
    const refreshing = host.refresh({ signal: abort.signal })
    refreshing.catch(() => {})
    for (let tick = arena.random.below(6); tick > 0; tick--) await Promise.resolve()
    abort.abort()
    const first = await arena.ended(refreshing)
    const { error } = first as { readonly error?: unknown }
    if (error !== undefined) await arena.value(host.refresh())
    await arena.rest()
    must(arena.status('s0').pid !== before, 'the wish for a reconnect was lost')
    // Nobody waits for this close; it goes on all the same.
    void host.close()
    await arena.world.pass(20_000)
    must(arena.world.processes.servers.length === 0, 'a close that nobody waits for has left a process')
  },

  async 'race.003'(arena) {
    arena.steady('s0', arena.random.pick(['legacy', 'modern'] as const))
    arena.steady('h0')
    const host = await arena.start([arena.stdio('s0'), arena.http('h0')])
    await arena.moment(30)
    host.cancelStarts()
    await arena.rest()
    await arena.world.pass(10_000)
    for (const name of ['s0', 'h0']) {
      const { state } = arena.status(name)
      must(state === 'ready' || state === 'cancelled', `${name} is ${state}`)
      const told = arena.lines.filter((line) => / (s0|h0) (ready|cancelled)$/.test(line) && line.includes(` ${name} `))
      must(told.length === 1, `${name} was said to be ${told.length} things`)
    }
    const isRunning = arena.world.processes.servers.length > 0
    must(isRunning === (arena.status('s0').state === 'ready'), 'a process does not fit its status')
  },

  async 'race.004'(arena) {
    const program = arena.steady('s0', arena.random.pick(['legacy', 'modern'] as const))
    program.thinkMs = () => arena.random.between(0, 700)
    await arena.start([arena.stdio('s0')])
    if (program.eras === 'legacy') await arena.moment(400)
    // A modern server tells only those who have asked to be told.
    else
      await arena.world
        .until(() => arena.count(/reads subscriptions\/listen/) > 0, 10_000)
        .then(() => arena.world.pass(701))
    for (let change = arena.random.between(1, 6); change > 0; change--) {
      program.listings.push(['add', 'find', 'idem'])
      program.revision += 1
      arena.announce(program)
      await arena.moment(400)
    }
    // The last change comes while a listing is on its way.
    const before = arena.count(/reads tools\/list/)
    arena.announce(program)
    await arena.world.until(() => arena.count(/reads tools\/list/) > before, 70_000)
    await arena.moment(900)
    program.listings.push(['add', 'find', 'idem'])
    program.revision += 1
    arena.announce(program)
    await arena.rest()
    await arena.world.pass(80_000)
    const binding = await arena.bind()
    const { description } = arena.tool(binding, 's0')
    must(description === `add, revision ${program.revision}`, `${description} instead of revision ${program.revision}`)
    await arena.release(binding)
  },

  async 'race.005'(arena) {
    const program = arena.steady('s0')
    await arena.start([arena.stdio('s0')])
    await arena.rest()
    const binding = await arena.bind()
    const prepared = binding.prepare(arena.tool(binding, 's0'))
    if (prepared === undefined) throw new Error('not prepared')
    program.listings.push(['add', 'find'])
    program.revision += 1
    arena.announce(program)
    await arena.world.pass(arena.random.below(600))
    const outcome = await arena.value(prepared.call({ token: 900 }))
    const record = arena.world.ledger.of(900)
    if (outcome.kind === 'ok') must(record.ran === 1, 'an answered call ran another number of times')
    else
      must(
        'error' in outcome && outcome.error.code === 'CATALOG_CHANGED' && record.arrivals.length === 0,
        'refused late',
      )
    await arena.release(prepared)
    await arena.release(binding)
  },

  async 'race.006'(arena) {
    const name = arena.random.pick(['s0', 'h0'])
    arena.steady(name)
    const host = await arena.start([name === 's0' ? arena.stdio('s0') : arena.http('h0')])
    await arena.rest()
    const binding = await arena.bind()
    const shown = binding.statuses[0]?.serverInfo?.['version']
    const tool = arena.tool(binding, name)
    await arena.moment()
    // Another connection, or another session of the same one: neither is what was shown.
    const again = arena.random.chance(50) ? host.reconnect(name).then(() => {}) : restart(arena, name)
    await arena.moment(1_500)
    const calls = [arena.call(binding, tool), arena.call(binding, tool)]
    if (arena.random.chance(50)) await arena.release(binding)
    for (const { token, outcome } of calls) {
      const { kind } = await arena.value(outcome)
      const { arrivals, ran } = arena.world.ledger.of(token)
      must(
        arrivals.every(({ instance }) => instance === shown),
        'a call was rerouted',
      )
      must(arrivals.length <= 1 && (kind !== 'ok' || ran === 1), 'a call ran another number of times')
    }
    await arena.value(again)
    await arena.release(binding)
  },

  async 'race.007'(arena) {
    const program = arena.steady('s0')
    program.listings[0] = ['read', 'add']
    const definition = arena.stdio('s0', { startup: 'lazy-when-cached', trustAnnotations: true })
    const first = await arena.start([definition])
    await arena.rest()
    await arena.world.pass(3_000)
    await arena.value(first.close())
    // The next process knows the tools from before; meanwhile one of them has become another one.
    const isOther = arena.random.chance(50)
    if (isOther) Object.defineProperty(program, 'toolExtras', { value: { outputSchema: { type: 'object' } } })
    const host = await arena.start([definition])
    const waking = arena.random.chance(50) ? host.whenSettled({ servers: ['s0'] }) : Promise.resolve()
    await arena.moment()
    const binding = await arena.bind()
    const tool = arena.tool(binding, 's0', 'read')
    must(tool.state === 'live' || tool.annotations?.['readOnlyHint'] === undefined, 'a cached hint was kept')
    const { token, outcome } = arena.call(binding, tool)
    const end = await arena.value(outcome)
    if (tool.state === 'cached' && isOther)
      must(arena.world.ledger.of(token).arrivals.length === 0, 'another tool was called')
    else must(end.kind === 'ok', `the call ended as ${end.kind}`)
    await arena.value(waking)
    await arena.release(binding)
  },

  async 'race.008'(arena) {
    arena.steady('s0')
    const slow = arena.steady('s1')
    const cached = arena.stdio('s0', { startup: 'lazy-when-cached' })
    const first = await arena.start([cached])
    await arena.rest()
    await arena.world.pass(3_000)
    await arena.value(first.close())
    slow.thinkMs = () => 9 * 86_400_000
    const budget = { startupTimeoutMs: 30 * 86_400_000 }
    const host = await arena.start([cached, arena.stdio('s1', budget)])
    const binding = host.bind({ requiredServers: ['s1'] })
    await arena.moment()
    await arena.world.pass(arena.random.between(1, 9) * 86_400_000)
    host.cancelStarts()
    const taken = await arena.value(binding)
    must(
      taken.tools.some(({ server, state }) => server === 's0' && state === 'cached'),
      'the catalog was dropped',
    )
    must(arena.status('s0').state === 'dormant', 'the server was started')
    await arena.release(taken)
  },

  async 'race.009'(arena) {
    arena.steady('s0').act = () => 'ask'
    let isAsking = true
    let isWrong = false
    const host = await arena.start([arena.stdio('s0')], {
      trust: { approvals: 'ask', fullAccess: false },
      handlers: {
        elicit: async () => {
          isWrong ||= !isAsking
          return { action: 'cancel' }
        },
      },
    })
    await arena.rest()
    const binding = await arena.bind()
    const outcomes = []
    for (let count = 0; count < 12; count++) {
      isAsking = arena.random.chance(50)
      host.replaceTrust({
        trust: isAsking ? { approvals: 'ask', fullAccess: false } : { approvals: 'never', fullAccess: true },
      })
      if (arena.random.chance(60)) outcomes.push(arena.call(binding, arena.tool(binding, 's0')))
      await arena.moment(10)
    }
    for (const { token, outcome } of outcomes) {
      await arena.value(outcome)
      // Asking leads to the person's `cancel`, full access accepts a form without fields; a mixture would decline.
      const { action } = arena.world.ledger.of(token).reply as { readonly action?: string }
      must(action === 'cancel' || action === 'accept', `a mixture of policies answered ${action}`)
    }
    must(!isWrong, 'a person was asked although the policy says never')
    await arena.release(binding)
  },

  async 'race.010'(arena) {
    const servers = ['s0', 's1', 's2']
    for (const name of servers) arena.steady(name).act = () => 'ask'
    const host = await arena.start(servers.map((name) => arena.stdio(name)))
    await arena.rest()
    const binding = await arena.bind()
    const calls = servers.map((server) => ({ server, ...arena.call(binding, arena.tool(binding, server)) }))
    await arena.world.pass(1_000)
    const questions = [...host.questions()].sort(() => arena.random.between(-1, 1))
    must(new Set(questions.map(({ id }) => id)).size === servers.length, `${questions.length} questions are open`)
    for (const { id, server } of questions) {
      host.answer(id, server === 's1' ? { action: 'decline' } : { action: 'cancel' })
      await arena.moment()
    }
    for (const { server, token, outcome } of calls) {
      must((await arena.value(outcome)).kind === 'ok', `${server} was not answered`)
      const { action } = arena.world.ledger.of(token).reply as { readonly action?: string }
      must(action === (server === 's1' ? 'decline' : 'cancel'), `${server} got ${action}`)
    }
    await arena.release(binding)
  },

  async 'race.011'(arena) {
    for (const name of ['s0', 's1']) arena.steady(name).act = () => 'ask'
    const host = await arena.start([arena.stdio('s0'), arena.stdio('s1')])
    await arena.rest()
    const binding = await arena.bind()
    const abort = new AbortController()
    const mine = arena.call(binding, arena.tool(binding, 's0'), { signal: abort.signal })
    const other = arena.call(binding, arena.tool(binding, 's1'))
    // A server that hears of the end too late asks all the same, on behalf of nobody; here it has asked.
    await arena.world.until(() => host.questions().length === 2, 2_000)
    await arena.moment()
    abort.abort()
    must((await arena.value(mine.outcome)).kind === 'cancelled', 'the call went on')
    await arena.world.pass(1_000)
    const open = host.questions()
    must(open.length === 1 && open[0]?.server === 's1', `${open.map(({ server }) => server).join(' ')} are open`)
    for (const { id } of open) host.answer(id, { action: 'accept', content: {} })
    must((await arena.value(other.outcome)).kind === 'ok', 'the other question was lost')
    await arena.release(binding)
  },

  async 'race.012'(arena) {
    arena.steady('s0')
    arena.steady('s1').thinkMs = () => arena.random.below(500)
    const kept = arena.stdio('s0')
    const host = await arena.start([kept])
    const configuring = host.configure([kept, arena.stdio('s1')])
    await arena.value(configuring)
    await arena.moment(500)
    await arena.value(host.configure([kept]))
    await arena.world.pass(8_000)
    const left = arena.world.processes.servers.filter(({ program }) => program.key === 'sim-s1/v0')
    must(left.length === 0, 'a process was left by a start that nobody wants')
    must(arena.status('s0').state === 'ready', 'the other server was disturbed')
  },

  async 'race.013'(arena) {
    const program = arena.steady('h0')
    let isContended = false
    let isReadable = true
    const read = async (): Promise<never> => {
      await new Promise<void>((resolve) => arena.world.timeline.later(0, 20, resolve))
      if (!isReadable) throw new Error('locked')
      return { snapshot: { kind: 'value', key: 'one' }, isContended } as never
    }
    const isReady = arena.random.chance(50)
    if (!isReady) program.mood = 'refuses'
    const host = await arena.start([arena.http('h0')], { credentials: { read } })
    await arena.rest()
    must(arena.status('h0').state === (isReady ? 'ready' : 'needs-auth'), `h0 is ${arena.status('h0').state}`)
    isContended = !isReady
    isReadable = !isReady
    const before = arena.world.network.requests
    const refreshes = [host.refresh()]
    await arena.moment()
    refreshes.push(host.refresh())
    for (const refreshing of refreshes) await arena.value(refreshing)
    await arena.rest()
    must(arena.world.network.requests === before, 'the server was asked again')
    must(arena.status('h0').state === (isReady ? 'ready' : 'needs-auth'), 'the state was lost')
  },

  async 'race.014'(arena) {
    arena.steady('h0')
    let stored = 'one'
    let live = 'one'
    const host = await arena.start([arena.http('h0')], {
      credentials: {
        read: async () => {
          const key = stored
          await new Promise<void>((resolve) => arena.world.timeline.later(0, 20, resolve))
          return { snapshot: { kind: 'value', key }, isContended: false }
        },
        live: () => live,
      },
    })
    await arena.rest()
    // The session renews its token: first in its memory, then in the store.
    live = 'two'
    stored = 'two'
    await arena.moment()
    const [row] = await arena.value(host.refresh())
    must(row?.action === 'reuse', `the session was ended: ${row?.because}`)
    stored = 'three'
    const [next] = await arena.value(host.refresh())
    must(next?.action === 'start', 'somebody else signed in, and the session was kept')
    await arena.rest()
  },

  async 'race.015'(arena) {
    const program = arena.steady('h0')
    const { world } = arena
    let token = 1
    const authorization = {
      header: () => `Bearer token-${token}`,
      challenge: async () => {
        await new Promise<void>((resolve) => world.timeline.later(0, 80, resolve))
        token += 1
        program.mood = 'good'
        return true
      },
    }
    const host = await arena.start([arena.http('h0')], { authorization: () => authorization })
    await arena.rest()
    const binding = await arena.bind()
    const tool = arena.tool(binding, 'h0')
    const calls = [arena.call(binding, tool)]
    if (arena.random.chance(50)) world.network.forgetSessions(program)
    program.mood = 'refuses'
    calls.push(arena.call(binding, tool))
    await arena.moment()
    world.network.forgetSessions(program)
    calls.push(arena.call(binding, tool))
    for (const { token: number, outcome } of calls) {
      const end = await arena.value(outcome)
      const { ran, arrivals } = world.ledger.of(number)
      must(arrivals.length <= 1, 'a call was run twice')
      must(end.kind === 'ok' ? ran === 1 : true, 'an answered call has not run')
    }
    await arena.release(binding)
    // What was given up is there again when somebody asks for it; the old view would not be led there.
    program.mood = 'good'
    await arena.value(host.refresh())
    await world.pass(31_000)
    await arena.value(host.whenSettled({ servers: ['h0'] }))
    const next = await arena.bind()
    const last = arena.call(next, arena.tool(next, 'h0'))
    must((await arena.value(last.outcome)).kind === 'ok', 'the server did not come back')
    await arena.release(next)
  },

  async 'race.016'(arena) {
    const program = arena.steady('h0')
    const { world } = arena
    let renew: () => void = () => {}
    const renewed = new Promise<void>((resolve) => {
      renew = resolve
    })
    const authorization = {
      header: () => 'Bearer token',
      challenge: async () => {
        await renewed
        program.mood = 'good'
        return true
      },
    }
    await arena.start([arena.http('h0')], { authorization: () => authorization })
    await arena.rest()
    const binding = await arena.bind()
    program.mood = 'refuses'
    const abort = new AbortController()
    const { token, outcome } = arena.call(binding, arena.tool(binding, 'h0'), { timeoutMs: 200, signal: abort.signal })
    let endedAtMs = Number.POSITIVE_INFINITY
    void outcome.then(() => {
      endedAtMs = world.timeline.nowMs
    })
    await world.pass(arena.random.between(100, 400))
    if (arena.random.chance(50)) abort.abort()
    await arena.moment()
    renew()
    const end = await arena.value(outcome)
    await world.pass(5_000)
    const { ran, arrivals } = world.ledger.of(token)
    must(ran <= 1, 'it ran twice')
    if (end.kind === 'ok') must(ran === 1, 'it has not run')
    else
      must(
        arrivals.every(({ atMs }) => atMs <= endedAtMs),
        'it was sent after its end',
      )
    await arena.release(binding)
  },

  async 'race.017'(arena) {
    const program = arena.steady('h0')
    await arena.start([arena.http('h0')])
    await arena.rest()
    const binding = await arena.bind()
    const tool = arena.tool(binding, 'h0')
    const before = arena.count(/POST initialize/)
    arena.world.network.forgetSessions(program)
    const calls = []
    for (let count = 0; count < 8; count++) {
      calls.push(arena.call(binding, tool))
      if (arena.random.chance(40)) await arena.moment(5)
    }
    for (const { token, outcome } of calls) {
      must((await arena.value(outcome)).kind === 'ok', 'a call was lost')
      must(arena.world.ledger.of(token).ran === 1, 'a call ran another number of times')
    }
    must(arena.count(/POST initialize/) === before + 1, 'the session was made anew more than once')
    await arena.release(binding)
  },

  async 'race.018'(arena) {
    const program = arena.steady('s0')
    await arena.start([arena.stdio('s0')])
    await arena.rest()
    let cursor = 0
    program.endless = () => `page-${++cursor}`
    arena.announce(program)
    for (let notice = 0; notice < 3; notice++) {
      await arena.world.pass(arena.random.below(400))
      arena.announce(program)
    }
    await arena.world.pass(3_000)
    must(arena.status('s0').state === 'ready', 'the server was given up with its listing')
    must(arena.status('s0').reason?.code === 'LISTING_FAILED', `the reason is ${arena.status('s0').reason?.code}`)
    must(cursor > 99 && cursor % 100 === 0, `${cursor} pages were asked for`)
    const binding = await arena.bind()
    must(binding.tools.length === 3, 'the last good listing was lost')
    await arena.release(binding)
  },

  async 'race.019'(arena) {
    const extras = { _meta: { 'convoke/connector': { id: 'bank', name: 'Bank' }, connector_id: 'bank' } }
    const program = arena.steady('h0')
    Object.defineProperty(program, 'toolExtras', { value: extras })
    const listeners = new Set<(change: 'replaced') => void>()
    const current = { id: 'one', grant: 'grant-1' }
    await arena.start([arena.http('h0')], {
      account: {
        origins: ['http://h2.sim'],
        current: () => current,
        token: () => 'grant-1',
        refresh: async () => false,
        onChange: (listener) => {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
      },
    })
    await arena.moment()
    for (const listener of listeners) listener('replaced')
    await arena.rest()
    const binding = await arena.bind()
    for (const tool of binding.tools)
      must(tool.connector === undefined && !JSON.stringify(tool.meta ?? {}).includes('bank'), 'it is a connector')
    must(program.lastAuthorization === undefined, 'it saw the token of the account')
    await arena.release(binding)
  },

  async 'race.021'(arena) {
    arena.world.env['TOKEN'] = SECRET
    const process = arena.steady('s0')
    process.beginning = () => arena.random.pick(['ok', 'exit-on-first', 'error', 'noise'] as const)
    const web = arena.steady('h0')
    web.mood = arena.random.pick(['good', 'refuses', 'flaky', 'start-fails'] as const)
    const definitions = [
      arena.stdio('s0', { transport: stdioWith(SECRET) }),
      arena.http('h0', {}, { bearerTokenEnvVar: 'TOKEN' }),
    ]
    const host = await arena.start(definitions)
    await arena.moment(3_000)
    const plan = await arena.value(host.plan(definitions))
    await arena.rest()
    await arena.world.pass(3_000)
    const { files } = arena.world
    const texts = [JSON.stringify([host.statuses, arena.events, plan])]
    for (const path of files.paths) texts.push(path, (await arena.value(files.read(path, 1_000_000))).toString('utf8'))
    must(!texts.some((text) => text.includes(SECRET)), 'the secret is in a text')
  },

  async 'race.022'(arena) {
    arena.steady('s0').act = () => 'ask'
    arena.steady('s1').thinkMs = () => 300
    const host = await arena.start([arena.stdio('s0'), arena.stdio('s1', { required: true })])
    await arena.value(host.whenSettled({ servers: ['s0'] }))
    const binding = await arena.bind()
    const { outcome } = arena.call(binding, arena.tool(binding, 's0'))
    const required = host.requireReady()
    const next = host.bind({ requiredServers: ['s1'] })
    await arena.world.until(() => host.questions().length > 0, 2_000)
    await arena.moment()
    const [question] = host.questions()
    if (question === undefined) throw new Error('nobody is asked')
    host.answer(question.id, { action: 'accept', content: {} })
    must((await arena.value(outcome)).kind === 'ok', 'the question was not answered')
    await arena.value(required)
    await arena.release(await arena.value(next))
    await arena.release(binding)
  },

  async 'race.023'(arena) {
    arena.steady('s0').beginning = () => arena.random.pick(['ok', 'exit-on-first', 'silent'] as const)
    arena.steady('h0')
    const definitions = [arena.stdio('s0'), arena.http('h0'), arena.stdio('s1')]
    const host = await arena.start(definitions, { start: ['s0', 'h0'] })
    for (let look = 0; look < 8; look++) {
      await arena.moment(2_000)
      await arena.world.pass(0)
      const { processes, network, timeline } = arena.world
      const before = [processes.launches, network.requests, timeline.timerCount].join()
      void host.statuses
      host.questions()
      void host.plan(definitions)
      await arena.world.pass(0)
      const after = [processes.launches, network.requests, timeline.timerCount].join()
      must(before === after, `looking led from ${before} to ${after}`)
    }
    must(arena.status('s1').state === 'dormant', 'looking woke a server')
    await arena.value(host.plan(definitions))
  },

  async 'race.024'(arena) {
    arena.steady('s0').thinkMs = () => 60_000
    arena.steady('s1').thinkMs = () => 60_000
    const host = await arena.start([arena.stdio('s0'), arena.stdio('s1')], { optionalStartupGraceMs: 1_000 })
    const { timeline } = arena.world
    const beganAtMs = timeline.nowMs
    const ends: number[] = []
    const bindings = []
    for (let count = 0; count < 4; count++) {
      const binding = host.bind()
      bindings.push(binding)
      // One that is asked for after the grace is over has it at once.
      if (timeline.nowMs - beganAtMs < 1_000) void binding.then(() => ends.push(timeline.nowMs))
      await arena.world.pass(arena.random.below(500))
    }
    for (const binding of bindings) await arena.release(await arena.value(binding))
    // The first that waits fixes the end for all; timers of a loaded machine are a little late.
    must(
      ends.every((atMs) => atMs - beganAtMs <= 1_050),
      'a view had a grace of its own',
    )
    const late = host.bind()
    const at = timeline.nowMs
    await arena.world.pass(Math.max(0, beganAtMs + 1_050 - at))
    const lateAtMs = timeline.nowMs
    const view = await arena.value(late)
    must(timeline.nowMs - lateAtMs <= 5, 'a later view had a grace of its own')
    await arena.release(view)
  },
}

/** The server ends by itself, and somebody needs it again. */
async function restart({ world, host }: Arena, name: string): Promise<void> {
  if (name.startsWith('h')) return void (await host.reconnect(name))
  const later = (ms: number): Promise<void> => new Promise((resolve) => world.timeline.later(ms, ms, resolve))
  for (const server of world.processes.servers) server.exit(1, null)
  while (host.statuses.some(({ state }) => state === 'ready')) await later(2)
  await later(1_000)
  await host.whenSettled({ servers: [name] })
}

function names(event: HostEvent): readonly string[] {
  return event.kind === 'set.published' ? event.servers.map(({ server }) => server) : []
}

function stdioWith(secret: string): ServerDefinition['transport'] {
  return { kind: 'stdio', command: 'sim-s0', args: ['v0'], env: { API_TOKEN: secret }, envVars: ['TOKEN'] }
}
