// Things that happen at the same time, in many orders: each race is run with other moments each time. CONVOKE_RACE_RUNS sets how often; a failure names its seed.
import { defineServer, type Host, type HostEvent, nodePlatform } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { CatalogCache } from '../src/catalog/index.ts'
import { Elicitation } from '../src/elicitation/index.ts'
import { catalogOf, named, scopeOf, tool } from './catalog-support.ts'
import { hostOf, http, isAlive, rawNames, scripted, seenBy, statesOf, statusOf } from './support.ts'

const RUNS = Number(process.env['CONVOKE_RACE_RUNS'] ?? 10)
const LIMIT_MS = 30_000 + RUNS * 1_500

/** A number from 0 up to 1, the next one each time; the same for the same seed. */
type Random = () => number
function randomOf(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

async function rounds(work: (random: Random) => Promise<void>): Promise<void> {
  for (let seed = 1; seed <= RUNS; seed++) {
    try {
      await work(randomOf(seed))
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
}

const moment = (random: Random, ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, random() * ms))
const shuffled = <Item>(items: readonly Item[], random: Random): Item[] =>
  items
    .map((item) => ({ item, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item)
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

verifies(
  'race.001',
  async () => {
    await using web = await startScriptedHttp({})
    const events: HostEvent[] = []
    const { host } = await hostOf([http('old', web.url)], {
      onEvent: (event) => events.push(event),
      credentials: { read: () => nextTurn().then(() => ({ snapshot: { kind: 'none' }, isContended: false })) },
    })
    await using _ = host
    await host.whenSettled()
    await expect.poll(() => events.at(-1)?.kind).toBe('set.startup-completed')
    await rounds(async (random) => {
      const abort = new AbortController()
      const from = events.length
      const before = host.statuses.map(({ name }) => name)
      const name = `new${Math.floor(random() * 1e6)}`
      const configuring = host.configure([http(name, web.url)], { signal: abort.signal }).then(
        () => 'published',
        () => 'given up',
      )
      for (let turns = Math.floor(random() * 6); turns > 0; turns--) await nextTurn()
      abort.abort()
      const now = await configuring
      await host.whenSettled()
      if (now === 'given up') {
        expect(events.slice(from)).toEqual([])
        expect(host.statuses.map((status) => status.name)).toEqual(before)
      } else {
        expect(events[from]).toMatchObject({ kind: 'set.published' })
        expect(host.statuses.map(({ name: one, state }) => [one, state])).toEqual([[name, 'ready']])
        await expect.poll(() => events.at(-1)?.kind).toBe('set.startup-completed')
      }
    })
  },
  LIMIT_MS,
)

verifies(
  'race.002',
  async () => {
    await using web = await startScriptedHttp({})
    const { host, events } = await hostOf([http('s', web.url)], {
      credentials: { read: () => nextTurn().then(() => ({ snapshot: { kind: 'none' }, isContended: false })) },
    })
    await using _ = host
    await host.whenSettled()
    await rounds(async (random) => {
      const starts = (): number => statesOf(events, 's').filter((state) => state === 'starting').length
      const before = starts()
      host.reconnectOnNextRefresh()
      let done = 0
      const tries = Array.from({ length: 3 }, async () => {
        const abort = new AbortController()
        const refreshing = host.refresh({ signal: abort.signal }).then(
          () => (done += 1),
          () => {},
        )
        for (let turns = Math.floor(random() * 4); turns > 0; turns--) await nextTurn()
        abort.abort()
        await refreshing
      })
      await Promise.all(tries)
      if (done === 0) await host.refresh()
      await host.whenSettled()
      expect(starts()).toBe(before + 1)
    })
  },
  LIMIT_MS,
)

verifies(
  'race.003',
  async () => {
    await using web = await startScriptedHttp({ initializeDelayMs: 10, listDelayMs: 10 })
    await rounds(async (random) => {
      const { host, events } = await hostOf([http('s', web.url)])
      await moment(random, 45)
      host.cancelStarts()
      await host.whenSettled()
      const { state } = statusOf(host, 's')
      expect(['ready', 'cancelled']).toContain(state)
      await moment(random, 30)
      expect(statesOf(events, 's').filter((one) => one === 'ready' || one === 'cancelled')).toEqual([state])
      await host.close()
    })
  },
  LIMIT_MS,
)

verifies(
  'race.004',
  async () => {
    await rounds(async (random) => {
      const cache = new CatalogCache({ platform: nodePlatform })
      const entry = cache.entry(scopeOf(named('s')))
      const tickets = Array.from({ length: 8 }, () => entry.ticket())
      let newest = 0
      for (const ticket of shuffled(tickets, random)) {
        await nextTurn()
        expect(entry.publish(ticket, catalogOf('s', [tool(`t${ticket}`)]))).toBe(ticket > newest)
        newest = Math.max(newest, ticket)
        expect(entry.snapshot?.listing.tools.map(({ rawName }) => rawName)).toEqual([`t${newest}`])
      }
    })
  },
  LIMIT_MS,
)

verifies(
  'race.006',
  async () => {
    const { host } = await hostOf([scripted('s')], { closeGraceMs: 200 })
    await using _ = host
    await host.whenSettled()
    await rounds(async (random) => {
      const binding = await host.bind()
      const shown = statusOf(host, 's').pid
      const reconnecting = moment(random, 20).then(() => host.reconnect('s'))
      const calls = Array.from({ length: 5 }, async () => {
        await moment(random, 40)
        return (await seenBy(binding, 's')).pid
      })
      expect(new Set(await Promise.all(calls))).toEqual(new Set([shown]))
      await reconnecting
      await binding[Symbol.asyncDispose]()
    })
  },
  LIMIT_MS,
)

verifies(
  'race.009',
  async () => {
    const asked: string[] = []
    const elicitation = new Elicitation({
      policy: { trust: { approvals: 'ask', fullAccess: false } },
      handlers: {
        elicit: async () => {
          asked.push('asked')
          return { action: 'accept', content: {} }
        },
      },
      platform: nodePlatform,
      emit: () => {},
    })
    const policies = [
      { trust: { approvals: 'never', fullAccess: false } },
      { trust: { approvals: 'ask', fullAccess: true } },
      { trust: { approvals: { mcpElicitations: false }, fullAccess: true } },
    ] as const
    await rounds(async (random) => {
      const [handler] = Object.values(elicitation.handlersFor('s'))
      const flips = Array.from({ length: 20 }, async () => {
        await moment(random, 3)
        elicitation.replacePolicy(policies[Math.floor(random() * policies.length)] ?? policies[0])
      })
      const form = { message: 'm', requestedSchema: { type: 'object', properties: { a: { type: 'string' } } } }
      const answers = Array.from({ length: 10 }, async () => {
        await moment(random, 3)
        const before = asked.length
        const answer = await handler?.(form, { method: 'elicitation/create', signal: new AbortController().signal })
        return [answer?.['action'], asked.length > before] as const
      })
      await Promise.all(flips)
      // Nothing with a field is accepted unless a person was asked, whatever the policies were meanwhile.
      for (const [action, wasAsked] of await Promise.all(answers)) if (action === 'accept') expect(wasAsked).toBe(true)
    })
    elicitation.close()
  },
  LIMIT_MS,
)

verifies(
  ['race.010', 'race.011'],
  async () => {
    await rounds(async (random) => {
      const ended: string[] = []
      const elicitation = new Elicitation({
        policy: { trust: { approvals: 'ask', fullAccess: false } },
        handlers: { elicit: async () => undefined },
        platform: nodePlatform,
        emit: (event) => {
          if (event.kind === 'question.settled') ended.push(event.outcome.id)
        },
      })
      const form = { message: 'm', requestedSchema: { type: 'object', properties: {} } }
      const asks = ['a', 'b', 'c'].map(async (server) => {
        const abort = new AbortController()
        const handler = elicitation.handlersFor(server)['elicitation/create']
        const answer = handler?.(
          { ...form, message: server },
          { method: 'elicitation/create', signal: abort.signal },
        ).then(
          (one) => `${server} ${String(one['action'])}`,
          () => `${server} gone`,
        )
        await nextTurn()
        const mine = elicitation.questions().find(({ message }) => message === server)
        await Promise.all([
          moment(random, 4).then(() => abort.abort()),
          moment(random, 4).then(() => {
            try {
              if (mine !== undefined) elicitation.answer(mine.id, { action: 'accept', content: {} })
            } catch {
              // it was withdrawn before
            }
          }),
        ])
        return answer
      })
      const answers = await Promise.all(asks)
      answers.forEach((answer, index) => {
        expect(answer).toMatch(new RegExp(`^${'abc'[index]} (accept|cancel|gone)$`))
      })
      expect(elicitation.questions()).toEqual([])
      expect(new Set(ended).size).toBe(ended.length)
      expect(ended).toHaveLength(3)
      elicitation.close()
    })
  },
  LIMIT_MS,
)

verifies(
  'race.012',
  async () => {
    const left = (): number[] =>
      nodePlatform.processes
        .carrying('CONVOKE_LEASE')
        .filter(({ pid }) => nodePlatform.processes.variable(pid, 'TMPDIR') === process.env['TMPDIR'] && isAlive(pid))
        .map(({ pid }) => pid)
    await rounds(async (random) => {
      const { host } = await hostOf([scripted('s', { initializeDelayMs: 60 })], { closeGraceMs: 200 })
      await moment(random, 250)
      if (random() < 0.5) await host.configure([])
      await host.close()
      expect(left()).toEqual([])
    })
  },
  LIMIT_MS,
)

verifies(
  'race.020',
  async () => {
    await rounds(async () => {
      const cache = new CatalogCache({ platform: nodePlatform })
      const scope = (handle: object): ReturnType<typeof scopeOf> =>
        scopeOf(named('s'), { environment: { kind: 'resolved', name: 'box', handle } })
      const [one, other] = [{}, {}]
      const first = cache.entry(scope(one))
      first.publish(first.ticket(), catalogOf('s', [tool('of-one')]))
      expect(cache.entry(scope(other)).snapshot).toBeUndefined()
      expect(cache.entry(scope(one))).toBe(first)
    })
  },
  LIMIT_MS,
)

verifies(
  'race.023',
  async () => {
    await rounds(async (random) => {
      const definition = defineServer({ ...scripted('asleep'), name: 'asleep' })
      const { host, events } = await hostOf([definition], { start: [] })
      const looks = Array.from({ length: 50 }, async () => {
        await moment(random, 5)
        look(host)
      })
      await Promise.all(looks)
      expect(events.filter(({ kind }) => kind === 'server.state-changed')).toEqual([])
      expect(statusOf(host, 'asleep').state).toBe('dormant')
      await host.close()
    })
  },
  LIMIT_MS,
)

/** Everything that only looks. */
function look(host: Host): void {
  host.explain('asleep')
  host.explain('asleep/echo')
  host.questions()
  void host.conflicts
  void host.definitions
  expect(host.statuses).toHaveLength(1)
}

verifies(
  'race.024',
  async () => {
    await rounds(async (random) => {
      const silent = scripted('s', { discover: 'silent', initialize: 'silent' })
      const { host } = await hostOf([silent], { optionalStartupGraceMs: 120, closeGraceMs: 200 })
      const beganAtMs = performance.now()
      const bindings = Array.from({ length: 6 }, async () => {
        await moment(random, 60)
        await using binding = await host.bind()
        expect(rawNames(binding)).toEqual([])
      })
      await Promise.all(bindings)
      // Six graces one after the other would be 720 ms.
      expect(performance.now() - beganAtMs).toBeLessThan(600)
      await host.close()
    })
  },
  LIMIT_MS,
)
