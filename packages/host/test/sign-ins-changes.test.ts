// What changes around a stored sign-in: another takes its place, its entry is written anew, its host is closed, its authorization server hangs.
import { expect, test } from 'vitest'
import type { Grant } from '../src/auth/grant.ts'
import { GrantHolder } from '../src/auth/grant-holder.ts'
import { type CredentialRecord, newRecord } from '../src/auth/record.ts'
import { SignInIndex } from '../src/auth/sign-in-index.ts'
import { SignInRecords } from '../src/auth/sign-in-records.ts'
import { SignInStores } from '../src/auth/sign-in-stores.ts'
import { type KeyValueStore, MemoryStore, StoreError } from '../src/store/index.ts'

const HOUR_MS = 3_600_000
const NOW_MS = 1_000_000
const SERVER = { name: 'one', url: 'https://mcp.example/mcp' }
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
        if (before !== undefined) await records.keep(before, parts.record.port, 'memory')
        const keys = await parts.record.store.keys()
        Object.assign(parts[where], { left: 0, isDone })
        await expect(records.keep(next, parts.record.port, 'memory')).rejects.toMatchObject({ failure: 'failed' })
        const row = { where, isDone, client: next.client.id }
        expect({ ...row, token: await tokenOf(index, stores) }).toEqual({ ...row, token: before?.tokens.accessToken })
        expect({ ...row, keys: await parts.record.store.keys() }).toEqual({ ...row, keys })
      }
})
