// The parts behind a stored sign-in, on stores in memory: what is saved, who holds it, and who still waits for an answer.
import { defineServer, HostError } from '@convoke/host'
import { expect, test } from 'vitest'
import type { RefreshAnswer } from '../src/auth/decide.ts'
import type { Grant } from '../src/auth/grant.ts'
import { GrantHolder, type TokenRequests } from '../src/auth/grant-holder.ts'
import { GrantHolders } from '../src/auth/grant-holders.ts'
import { type CredentialRecord, mayRevoke, newRecord, recordText, tokenDigest } from '../src/auth/record.ts'
import { type SignInEntry, SignInIndex } from '../src/auth/sign-in-index.ts'
import { SignInRecords } from '../src/auth/sign-in-records.ts'
import { SignInStores } from '../src/auth/sign-in-stores.ts'
import { type KeyValueStore, MemoryStore, StoreError } from '../src/store/index.ts'

const HOUR_MS = 3_600_000
const NOW_MS = 1_000_000
const SERVER = { name: 'one', url: 'https://mcp.example/mcp' }
const TRANSPORT = { kind: 'http', url: SERVER.url, headers: {}, envHeaders: {} } as const
const ENTRY: SignInEntry = {
  ...{ version: 1, server: SERVER, recordId: 'record', grantId: 'g1', store: 'memory', issuer: 'https://as.example' },
  ...{ resource: SERVER.url, clientId: 'client', signedInAtMs: NOW_MS },
}
const limits = { valueBytesMax: 100_000, totalBytesMax: 1_000_000, keysMax: 10, whenFull: 'refuse' } as const

function recordOf(grantId: string, over: Partial<Grant> = {}): CredentialRecord {
  const grant: Grant = {
    issuer: { issuer: 'https://as.example', tokenEndpoint: 'https://as.example/token' },
    resource: SERVER.url,
    client: { id: 'client', kind: 'configured' },
    tokens: {
      ...{ accessToken: `a of ${grantId}`, type: 'Bearer', refreshToken: `r of ${grantId}` },
      expiresAtMs: NOW_MS + HOUR_MS,
    },
    ...over,
  }
  return newRecord(grant, { server: SERVER, grantId, nowMs: NOW_MS })
}

/** Its `at`th change fails from now on; `isDone`: after it is done. Others go through. */
class Spoilt {
  readonly store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  left = Number.POSITIVE_INFINITY
  isDone = false
  readonly port: KeyValueStore = new Proxy<KeyValueStore>(this.store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      if (name !== 'set') return value.bind(target)
      return async (...given: [string, string]) => {
        const isSpoilt = this.left-- === 0
        if (!isSpoilt || this.isDone) await target.set(...given)
        if (isSpoilt) throw new StoreError('failed', 'Input/output error')
      }
    },
  })
}

const codeOf = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => 'done',
    (error: { code?: string }) => error.code ?? error,
  )

/** A promise, and what settles it. */
function deferred<Value>() {
  let resolve: (value: Value) => void = () => {}
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** A holder whose token has ended, and what it asks. */
async function expiring(requests: Partial<TokenRequests> = {}) {
  const store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  await store.set('record', recordText(recordOf('g1')))
  const holder = new GrantHolder({
    ...{ server: SERVER, recordId: 'record', grantId: 'g1' },
    open: async () => store,
    requests: { refresh: () => Promise.reject(new Error('nobody answers')), ...requests },
    dateMs: () => NOW_MS + HOUR_MS,
    setTimer: (callback) => setTimeout(callback),
  })
  return { store, holder }
}

/** The access token of whoever is signed in, as a connection finds it. */
async function tokenOf(index: SignInIndex, stores: SignInStores): Promise<string | undefined> {
  const reading = await index.read(SERVER)
  if (reading.kind !== 'entry') return undefined
  const { recordId, grantId } = reading.entry
  const holder = new GrantHolder({
    ...{ server: SERVER, recordId, grantId },
    open: () => stores.open('memory'),
    requests: { refresh: () => Promise.reject(new Error('nothing has to be renewed')) },
    dateMs: () => NOW_MS,
    setTimer: (callback) => setTimeout(callback),
  })
  return (await holder.current()).accessToken
}

test('a sign-in that cannot be saved leaves the one before as good as it was, and nothing of itself', async () => {
  const other: Partial<Grant> = { client: { id: 'other', kind: 'registered' } }
  for (const where of ['record', 'index'] as const)
    for (const isDone of [false, true])
      for (const [before, next] of [
        [recordOf('g1'), recordOf('g2')],
        [recordOf('g1'), recordOf('g2', other)],
        [undefined, recordOf('g2')],
      ] as const) {
        const parts = { record: new Spoilt(), index: new Spoilt() }
        const stores = new SignInStores('memory', { memory: () => parts.record.port })
        const index = new SignInIndex(parts.index.port)
        const records = new SignInRecords(stores, index)
        const place = { store: parts.record.port, kind: 'memory' } as const
        if (before !== undefined) await records.keep(before, place)
        const keys = await parts.record.store.keys()
        Object.assign(parts[where], { left: 0, isDone })
        await expect(records.keep(next, place)).rejects.toMatchObject({ failure: 'failed' })
        const row = { where, isDone, client: next.client.id }
        expect({ ...row, token: await tokenOf(index, stores) }).toEqual({ ...row, token: before?.tokens.accessToken })
        expect({ ...row, keys: await parts.record.store.keys() }).toEqual({ ...row, keys })
      }
})

test('what a sign-in takes the place of is deleted, also if it is damaged', async () => {
  const store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  const stores = new SignInStores('memory', { memory: () => store })
  const records = new SignInRecords(stores, new SignInIndex(new MemoryStore({ limits, dateMs: () => NOW_MS })))
  const place = { store, kind: 'memory' } as const
  const first = await records.keep(recordOf('g1'), place)
  const second = await records.keep(recordOf('g2', { client: { id: 'other', kind: 'registered' } }), place)
  expect(second).toMatchObject({ former: first.entry, replaced: [{ grantId: 'g1' }] })
  const damaged: KeyValueStore = new Proxy<KeyValueStore>(store, {
    get(target, name) {
      if (name === 'get') return async () => ({ kind: 'damaged', because: 'it cannot be opened' })
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const broken = new SignInStores('memory', { memory: () => damaged })
  const index = new SignInIndex(new MemoryStore({ limits, dateMs: () => NOW_MS }))
  await index.write(second.entry)
  const third = await new SignInRecords(broken, index).keep(recordOf('g3'), { store: damaged, kind: 'memory' })
  expect(third).toMatchObject({ former: second.entry, replaced: [] })
  expect(await store.keys()).toEqual([third.entry.recordId])
})

test('whether a renewal is under way is told by who holds the record, and nobody who looks keeps it out', async () => {
  const store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  const stores = new SignInStores('memory', { memory: () => store })
  const records = new SignInRecords(stores, new SignInIndex(store))
  const attempt = { refreshDigest: tokenDigest('r of g1'), startedAtMs: NOW_MS }
  await store.set('record', recordText({ ...recordOf('g1'), attempt }))
  const lock = await store.lock('record')
  expect(await records.look(ENTRY)).toMatchObject({ isRenewing: true, record: { attempt } })
  await lock[Symbol.asyncDispose]()
  expect(await records.look(ENTRY)).toMatchObject({ isRenewing: false, record: { attempt } })
  // Nobody who looks keeps a renewal out.
  await using _ = await store.lock('record', { waitMs: 0 })
})

test('a sign-in is taken back only where that cannot end the one in its place', () => {
  const same = { subject: { id: 'ada' } }
  const client = { id: 'other', kind: 'registered' } as const
  const issuer = { issuer: 'https://elsewhere.example', tokenEndpoint: 'https://elsewhere.example/token' }
  for (const [former, next, expected] of [
    [{}, {}, false],
    [same, same, false],
    [same, {}, false],
    [same, { subject: { id: 'grace' } }, true],
    [{}, { client }, true],
    [same, { ...same, issuer }, true],
  ] as const)
    expect([former, next, mayRevoke(recordOf('g1', former), recordOf('g2', next))]).toEqual([former, next, expected])
})

test('a renewal that waits for another program ends when the host is closed', async () => {
  const { store, holder } = await expiring()
  await using _ = await store.lock('record')
  const waiting = codeOf(holder.current())
  await new Promise((resolve) => setImmediate(resolve))
  await holder.close()
  expect(await waiting).toBe('REFRESH_FAILED')
})

test('what a sign-in has sent is waited for at the close, also when another one has taken its place', async () => {
  const store = new MemoryStore({ limits, dateMs: () => NOW_MS })
  await store.set('record', recordText(recordOf('g1')))
  const asked = deferred<void>()
  const answer = deferred<RefreshAnswer>()
  const holders = new GrantHolders({
    port: { dateMs: () => NOW_MS + HOUR_MS, setTimer: (callback) => setTimeout(callback) },
    open: async () => store,
    requests: () => ({
      refresh: () => {
        asked.resolve()
        return answer.promise
      },
    }),
    onChange: () => {},
  })
  const entry = { ...ENTRY, recordId: 'record', grantId: 'g1' }
  const call = codeOf(holders.of(defineServer({ name: 'one', transport: TRANSPORT }), entry).current())
  await asked.promise
  holders.retire(entry)
  let isClosed = false
  const closed = holders.close().then(() => {
    isClosed = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isClosed).toBe(false)
  answer.resolve({ kind: 'failed' })
  await closed
  expect(await call).toBe('REFRESH_FAILED')
})

test('getting tokens without a person is given up at the close', async () => {
  let isAborted = false
  const { store, holder } = await expiring({
    obtain: (signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          isAborted = true
          reject(new HostError('CANCELLED', 'cancelled'))
        })
      }),
  })
  await store.remove('record')
  const waiting = codeOf(holder.current())
  await new Promise((resolve) => setImmediate(resolve))
  await holder.close()
  expect([isAborted, await waiting]).toEqual([true, 'REFRESH_FAILED'])
})
