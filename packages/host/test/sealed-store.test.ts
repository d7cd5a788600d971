// Sealed values, and the file with the key to them.
import { chmod, link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeContract, verifies } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  FileStore,
  type KeyValueStore,
  MemoryStore,
  openSealingKey,
  SealedStore,
  type StoreLimits,
  sealedLimits,
} from '../src/store/index.ts'

const LIMITS = { keysMax: 4, valueBytesMax: 16, totalBytesMax: 40 } as const
const refusing: StoreLimits = { ...LIMITS, whenFull: 'refuse' }
const dropping: StoreLimits = { ...LIMITS, whenFull: 'drop-oldest' }
const KEY = new Uint8Array(32).fill(7)
const SECRET = 'planted-secret-1'

let root = ''
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'convoke-sealed-'))
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})

let nowMs = 1_000
const dateMs = (): number => ++nowMs
const newFolder = (): string => join(root, String(++count))
const sealed = (inner: KeyValueStore, limits = refusing, key = KEY): SealedStore =>
  new SealedStore({ inner, key, limits })
const inMemory = (limits = refusing): MemoryStore => new MemoryStore({ limits: sealedLimits(limits), dateMs })
const inFiles = (directory: string, limits = refusing): FileStore =>
  new FileStore({
    platform: { ...nodePlatform, dateMs },
    directory,
    limits: sealedLimits(limits),
    durability: 'durable',
  })

storeContract('sealed values in memory', {
  refusing: async () => sealed(inMemory()),
  dropping: async () => sealed(inMemory(dropping), dropping),
})
storeContract('sealed values in files', {
  refusing: async () => sealed(inFiles(newFolder())),
  dropping: async () => sealed(inFiles(newFolder(), dropping), dropping),
})

verifies('auth.014', async () => {
  const directory = newFolder()
  const inner = inFiles(directory)
  const store = sealed(inner)
  await store.set('a', SECRET)
  await store.compareAndSwap('b', undefined, SECRET)
  const text = await readFile(join(directory, 'a.json'), 'utf8')
  for (const plain of [SECRET, Buffer.from(SECRET).toString('hex'), Buffer.from(SECRET).toString('base64')])
    expect(text).not.toContain(plain)
  // The same value never looks the same.
  expect(await readFile(join(directory, 'b.json'), 'utf8')).not.toBe(text)
  await store.set('a', SECRET)
  expect(await readFile(join(directory, 'a.json'), 'utf8')).not.toBe(text)

  const broken = { kind: 'damaged', because: 'it does not open with this key, or was changed or moved' }
  await inner.set('moved', text)
  expect(await store.get('moved')).toEqual(broken)
  for (const at of [10, 40, text.length - 1]) {
    await inner.set('a', `${text.slice(0, at)}${text[at] === '0' ? '1' : '0'}${text.slice(at + 1)}`)
    expect(await store.get('a')).toEqual(broken)
  }
  await inner.set('a', text)
  expect(await sealed(inner, refusing, new Uint8Array(32).fill(8)).get('a')).toEqual(broken)
  expect(await store.get('a')).toMatchObject({ kind: 'found', value: SECRET })
  await inner.set('a', text.slice(0, 40))
  expect(await store.get('a')).toEqual({ kind: 'damaged', because: 'its seal is incomplete' })
  await inner.set('a', `${text.slice(0, -1)}x`)
  expect(await store.get('a')).toEqual({ kind: 'damaged', because: 'its seal is incomplete' })
  await inner.set('a', SECRET)
  expect(await store.get('a')).toEqual({ kind: 'damaged', because: 'it is not sealed in a known way' })
  // It is there: nobody who expects nothing may write over it, and nobody takes it for what it was.
  expect(await store.compareAndSwap('a', undefined, 'x')).toBe(false)
  expect(await store.compareAndSwap('a', SECRET, undefined)).toBe(false)
  await store.set('a', 'new')
  expect(await store.get('a')).toMatchObject({ value: 'new' })
  expect(() => sealed(inner, refusing, new Uint8Array(16))).toThrow(RangeError)
})

verifies('auth.015', async () => {
  const inner = inMemory()
  const [one, other] = [sealed(inner), sealed(inner)]
  await one.set('a', 'x')
  await other.set('a', 'x')
  expect(await one.compareAndSwap('a', 'x', 'y')).toBe(true)
  // Somebody seals the same value anew between the look and the swap: it still is what was expected.
  let isFirst = true
  const meddling: KeyValueStore = Object.create(inner, {
    get: { value: (key: string) => inner.get(key) },
    compareAndSwap: {
      value: async (key: string, expected: string | undefined, value: string | undefined) => {
        if (isFirst) await other.set('a', 'y')
        isFirst = false
        return inner.compareAndSwap(key, expected, value)
      },
    },
  }) as KeyValueStore
  expect(await sealed(meddling).compareAndSwap('a', 'y', undefined)).toBe(true)
  expect(await one.get('a')).toEqual({ kind: 'absent' })
})

verifies('auth.016', async () => {
  const path = join(newFolder(), 'deep/sealing.key')
  const keys = await Promise.all(Array.from({ length: 8 }, () => openSealingKey({ platform: nodePlatform, path })))
  expect(new Set(keys.map((key) => Buffer.from(key).toString('hex'))).size).toBe(1)
  expect(Buffer.from(await readFile(path))).toEqual(Buffer.from(keys[0] ?? []))
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await stat(join(path, '..'))).mode & 0o777).toBe(0o700)
  expect(await readdir(join(path, '..'))).toEqual(['sealing.key'])
  // What a killed process has left of making one is taken away by the next who makes one, and nothing else.
  await rm(path)
  const leftover = `${path}.999999.1.tmp`
  await writeFile(leftover, 'x', { mode: 0o600 })
  await writeFile(`${path}.1.1.tmp.kept`, 'x', { mode: 0o600 })
  await utimes(leftover, 1, 1)
  await openSealingKey({ platform: nodePlatform, path })
  expect((await readdir(join(path, '..'))).sort()).toEqual(['sealing.key', 'sealing.key.1.1.tmp.kept'])
})

verifies('auth.017', async () => {
  const folder = newFolder()
  const good = join(folder, 'good.key')
  await openSealingKey({ platform: nodePlatform, path: good })
  const refusal = async (path: string, platform = nodePlatform): Promise<unknown> =>
    openSealingKey({ platform, path }).catch((error: unknown) => error)
  const failed = (because: string): object =>
    expect.objectContaining({ name: 'StoreError', failure: 'failed', message: expect.stringContaining(because) })
  const path = (name: string): string => join(folder, name)
  await symlink(good, path('link.key'))
  await writeFile(path('short.key'), 'x'.repeat(31), { mode: 0o600 })
  await writeFile(path('long.key'), 'x'.repeat(33), { mode: 0o600 })
  await writeFile(path('loose.key'), 'x'.repeat(32))
  await chmod(path('loose.key'), 0o640)
  await mkdir(path('folder.key'))
  expect(await refusal(path('link.key'))).toEqual(failed('it is a link'))
  expect(await refusal(path('short.key'))).toEqual(failed('it has 31 bytes'))
  expect(await refusal(path('long.key'))).toEqual(failed('it has 33 bytes'))
  expect(await refusal(path('loose.key'))).toEqual(failed('other users have access to it'))
  expect(await refusal(path('folder.key'))).toEqual(failed('it is no regular file'))
  expect((await stat(path('loose.key'))).mode & 0o777).toBe(0o640)
  expect(await refusal(good, { ...nodePlatform, userId: nodePlatform.userId + 1 })).toEqual(failed('another user'))
  await chmod(folder, 0o755)
  expect(await refusal(good)).toEqual(failed('its folder: other users have access to it'))
})

test('a second name of the key file, as a killed process leaves it, changes nothing', async () => {
  const path = join(newFolder(), 'a.key')
  const key = await openSealingKey({ platform: nodePlatform, path })
  await link(path, `${path}.999999.1.tmp`)
  expect(await openSealingKey({ platform: nodePlatform, path })).toEqual(key)
})
