// One sign-in that several calls and several programs use at once, on a store that is real and an authorization server that is a script.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import type { RefreshAnswer } from '../src/auth/decide.ts'
import { GrantHolder, type GrantHolderOptions, type RenewalStep, type TokenRequests } from '../src/auth/grant-holder.ts'
import { type CredentialRecord, newRecord, readRecord, recordText } from '../src/auth/record.ts'
import { MemoryStore, StoreError } from '../src/store/index.ts'

const HOUR_MS = 3_600_000
const ID = 'record'
const limits = { valueBytesMax: 100_000, totalBytesMax: 1_000_000, keysMax: 10, whenFull: 'refuse' } as const

function recordOf(tokens: Partial<CredentialRecord['tokens']> = {}, grantId = 'g1'): CredentialRecord {
  const grant = {
    issuer: { issuer: 'https://as.example', tokenEndpoint: 'https://as.example/token' },
    resource: 'https://mcp.example/mcp',
    client: { id: 'client', kind: 'registered' },
    tokens: { accessToken: 'a1', type: 'Bearer', refreshToken: 'r1', expiresAtMs: 0, ...tokens },
  } as const
  return newRecord(grant, { server: { name: 'one', url: 'https://mcp.example/mcp' }, grantId, nowMs: 0 })
}

/** An authorization server that rotates, and remembers what it was sent. */
class Provider implements TokenRequests {
  readonly sent: string[] = []
  answers: (() => RefreshAnswer | Promise<RefreshAnswer>)[] = []
  readonly #clock: () => number

  constructor(clock: () => number) {
    this.#clock = clock
  }

  async refresh(_record: CredentialRecord, refreshToken: string): Promise<RefreshAnswer> {
    this.sent.push(refreshToken)
    const scripted = this.answers.shift()
    if (scripted !== undefined) return scripted()
    return this.next(refreshToken)
  }

  next(refreshToken: string): RefreshAnswer {
    const number = Number(refreshToken.slice(1)) + 1
    const tokens = { accessToken: `a${number}`, type: 'Bearer', refreshToken: `r${number}` } as const
    return { kind: 'refreshed', tokens: { ...tokens, expiresAtMs: this.#clock() + HOUR_MS } }
  }
}

async function world(record: CredentialRecord | 'nothing' = recordOf()) {
  let nowMs = 1_000_000
  const store = new MemoryStore({ limits, dateMs: () => nowMs })
  if (record !== 'nothing') await store.set(ID, recordText(record))
  const provider = new Provider(() => nowMs)
  const steps: RenewalStep[] = []
  const changes: string[] = []
  const holder = (over: Partial<GrantHolderOptions> = {}): GrantHolder =>
    new GrantHolder({
      server: { name: 'one', url: 'https://mcp.example/mcp' },
      recordId: ID,
      grantId: 'g1',
      open: async () => store,
      requests: provider,
      dateMs: () => nowMs,
      setTimer: (callback) => {
        queueMicrotask(callback)
        return {}
      },
      onStep: (step) => steps.push(step),
      onChange: (change) => changes.push(change),
      ...over,
    })
  const stored = async (): Promise<CredentialRecord | undefined> => {
    const found = await store.get(ID)
    return found.kind === 'found' ? readRecord(found.value) : undefined
  }
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { store, provider, holder, stored, steps, changes, pass }
}

const expiring = { kind: 'expiring' } as const
const rejected = (accessToken: string) => ({ kind: 'rejected', accessToken }) as const
const may = { mayRefresh: true } as const
const mayNot = { mayRefresh: false } as const

verifies('auth.135', async () => {
  const { holder, provider, stored, changes } = await world()
  const one = holder()
  const other = holder()
  const tokens = await Promise.all([...Array(5)].flatMap(() => [one.current(), other.current()]))
  expect(new Set(tokens.map(({ accessToken }) => accessToken))).toEqual(new Set(['a2']))
  expect(provider.sent).toEqual(['r1'])
  expect((await stored())?.tokens).toMatchObject({ accessToken: 'a2', refreshToken: 'r2' })
  expect(changes).toEqual(['refreshed', 'refreshed'])
})

verifies('auth.136', async () => {
  const { holder, stored, steps, provider } = await world()
  let answer: (value: RefreshAnswer) => void = () => {}
  provider.answers = [() => new Promise((resolve) => (answer = resolve))]
  const one = holder()
  const left = one.current()
  left.catch(() => {})
  await expect.poll(() => steps).toEqual(['locking', 'locked', 'asking'])
  // Nobody has learned the answer yet: whoever finds this after our death knows that the token may be used up.
  expect((await stored())?.attempt?.refreshDigest).toMatch(/^[0-9a-f]{32}$/)
  expect((await stored())?.tokens.refreshToken).toBe('r1')
  expect(one.tokens).toBeUndefined()
  answer(provider.next('r1'))
  await expect.poll(() => steps).toEqual(['locking', 'locked', 'asking', 'answered', 'saved', 'releasing', 'released'])
  const after = await stored()
  expect(after?.attempt).toBeUndefined()
  expect(after).toMatchObject({ rotation: 'rotates', tokens: { accessToken: 'a2' } })
})

verifies('auth.137', async () => {
  const { holder, provider, stored, pass, changes } = await world()
  provider.answers = [() => ({ kind: 'rejected', because: 'invalid_grant' })]
  const one = holder()
  for (let tries = 0; tries < 3; tries++) {
    await expect(one.current()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
    pass(HOUR_MS)
  }
  await expect(holder().current()).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  expect(provider.sent).toEqual(['r1'])
  expect(await stored()).toMatchObject({ tokens: { refreshToken: 'r1' }, rejected: { because: 'invalid_grant' } })
  expect(changes).toEqual(['refresh-rejected', 'refresh-rejected'])
})

verifies('auth.138', async () => {
  const { holder, provider, pass } = await world(recordOf({ expiresAtMs: 1_020_000 }))
  const one = holder()
  provider.answers = [...Array(9)].map(() => () => ({ kind: 'failed' }) as const)
  // It ends in 20 s: nobody waits for the renewal to work before that.
  expect((await one.current()).accessToken).toBe('a1')
  expect((await one.current()).accessToken).toBe('a1')
  expect(provider.sent.length).toBe(1)
  pass(1_000)
  expect((await one.current()).accessToken).toBe('a1')
  expect(provider.sent.length).toBe(2)
  pass(19_000)
  await expect(one.current()).rejects.toMatchObject({ code: 'REFRESH_FAILED' })
  await expect(one.current()).rejects.toMatchObject({ code: 'REFRESH_FAILED' })
  expect(provider.sent.length).toBe(3)
  provider.answers = []
  pass(4_000)
  expect((await one.current()).accessToken).toBe('a2')
  expect(new Set(provider.sent)).toEqual(new Set(['r1']))
})

verifies('auth.139', async () => {
  const { holder, provider, store, stored } = await world()
  provider.answers = [
    async () => {
      await store.remove(ID)
      return provider.next('r1')
    },
  ]
  await expect(holder().current()).rejects.toMatchObject({ code: 'AUTH_REQUIRED', details: { because: 'signed-out' } })
  expect(await stored()).toBeUndefined()

  const other = await world()
  const fresh = recordOf({ accessToken: 'new', expiresAtMs: HOUR_MS }, 'g2')
  other.provider.answers = [
    async () => {
      await other.store.set(ID, recordText(fresh))
      return other.provider.next('r1')
    },
  ]
  await expect(other.holder().current()).rejects.toMatchObject({ details: { because: 'replaced' } })
  expect(await other.stored()).toEqual(fresh)
})

verifies('auth.140', async () => {
  const { holder, provider, stored } = await world(recordOf({ accessToken: 'b', expiresAtMs: undefined as never }))
  const one = holder()
  await one.current()
  // A late refusal of a token before: what is in force now is not touched.
  expect(await one.renew(rejected('a'), may)).toEqual({ kind: 'current' })
  expect(provider.sent).toEqual([])
  expect(await one.renew(rejected('b'), mayNot)).toEqual({ kind: 'sign-in', because: 'token-refused' })
  expect(provider.sent).toEqual([])
  // Somebody else has renewed it in the meantime.
  expect(await holder().renew(rejected('b'), may)).toEqual({ kind: 'current' })
  expect(await one.renew(rejected('b'), mayNot)).toEqual({ kind: 'current' })
  expect(one.tokens?.accessToken).toBe('a2')
  expect(provider.sent).toEqual(['r1'])
  expect((await stored())?.tokens.accessToken).toBe('a2')
})

verifies('auth.141', async () => {
  const { holder, provider, store, stored, pass } = await world()
  let failing = 3
  const flaky = new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (name !== 'compareAndSwap') return typeof value === 'function' ? value.bind(target) : value
      return async (key: string, from: string, to: string) => {
        const isAnswer = !to.includes('"attempt"')
        if (isAnswer && failing-- > 0) throw new StoreError('failed', 'No space left on device')
        return target.compareAndSwap(key, from, to)
      }
    },
  })
  const one = holder({ open: async () => flaky })
  expect((await one.current()).accessToken).toBe('a2')
  expect((await stored())?.tokens.accessToken).toBe('a2')

  // For longer: nobody sends what is not kept, and it is kept as soon as that can be.
  pass(2 * HOUR_MS)
  failing = 9
  await expect(one.current()).rejects.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE' })
  expect(provider.sent).toEqual(['r1', 'r2'])
  failing = 0
  pass(1_000)
  expect((await one.current()).accessToken).toBe('a3')
  expect(provider.sent).toEqual(['r1', 'r2'])
  expect(await stored()).toMatchObject({ tokens: { accessToken: 'a3', refreshToken: 'r3' } })
})

verifies('auth.142', async () => {
  const { holder, provider, pass, steps } = await world(recordOf({ expiresAtMs: 1_000_000 + HOUR_MS }))
  let opened = 0
  let broken: Error | undefined
  const { store } = await world(recordOf({ expiresAtMs: 1_000_000 + HOUR_MS }))
  const one = holder({
    async open() {
      opened++
      if (broken !== undefined) throw broken
      return store
    },
  })
  await one.current()
  expect(one.tokens?.accessToken).toBe('a1')
  expect(opened).toBe(1)
  broken = new StoreError('failed', 'The keyring is locked')
  pass(HOUR_MS / 2)
  expect((await one.current()).accessToken).toBe('a1')
  expect(opened).toBe(1)
  pass(HOUR_MS)
  const failure = await one.current().catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE', message: expect.stringContaining('locked') })
  expect(one.record?.tokens.accessToken).toBe('a1')
  expect(provider.sent).toEqual([])
  expect(steps).toEqual([])
})

verifies('auth.143', async () => {
  const { holder, provider, store } = await world()
  const dead = await store.get(ID)
  const record = dead.kind === 'found' ? readRecord(dead.value) : undefined
  if (record === undefined) throw new Error('there is a record')
  const { tokenDigest } = await import('../src/auth/record.ts')
  const attempt = { refreshDigest: tokenDigest('r1'), startedAtMs: 1 }
  await store.set(ID, recordText({ ...record, attempt }))
  await expect(holder().current()).rejects.toMatchObject({ details: { because: 'refresh-interrupted' } })
  expect(provider.sent).toEqual([])
  await store.set(ID, recordText({ ...record, attempt, rotation: 'stays' }))
  expect((await holder().current()).accessToken).toBe('a2')
})

test('a lock that another program does not let go of is told as such, and nothing is sent', async () => {
  const { holder, provider, store } = await world()
  const busy = new Proxy(store, {
    get(target, name) {
      if (name === 'lock') return () => Promise.reject(new StoreError('busy', 'held for more than 60000 ms'))
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const failure = await holder({ open: async () => busy })
    .current()
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE', details: { because: 'busy' } })
  expect(provider.sent).toEqual([])
})

test('what stands in the store and is no sign-in is told, and never taken for a sign-out', async () => {
  const { holder, store, stored } = await world()
  await store.set(ID, '{"version":1}')
  await expect(holder().current()).rejects.toMatchObject({ code: 'CREDENTIALS_UNAVAILABLE' })
  expect(await store.get(ID)).toMatchObject({ kind: 'found' })
  expect(await stored()).toBeUndefined()
})

test('a machine gets new tokens by itself, also the first ones', async () => {
  const { holder, stored } = await world('nothing')
  let obtained = 0
  const grant = (): CredentialRecord => {
    obtained++
    const { refreshToken: _, ...tokens } = recordOf({
      accessToken: `m${obtained}`,
      expiresAtMs: 1_000_000 + HOUR_MS,
    }).tokens
    return { ...recordOf(), tokens }
  }
  const requests = {
    refresh: () => Promise.reject(new Error('there is nothing to refresh')),
    obtain: async () => grant(),
  }
  const one = holder({ requests })
  expect((await one.current()).accessToken).toBe('m1')
  expect(await one.renew(rejected('m1'), may)).toEqual({ kind: 'current' })
  expect(one.tokens?.accessToken).toBe('m2')
  expect((await stored())?.tokens.accessToken).toBe('m2')
  expect(await one.renew(rejected('m2'), mayNot)).toMatchObject({ kind: 'sign-in' })
  expect(await one.renew(expiring, may)).toEqual({ kind: 'current' })
  expect(obtained).toBe(2)
})
