// The stores: one contract for all of them, and what only files can do wrong.
import { chmod, link, mkdir, mkdtemp, readdir, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeContract } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FileStore, MemoryStore, StoreError, type StoreLimits } from '../src/store/index.ts'
import { planRoom } from '../src/store/room.ts'

const LIMITS = { keysMax: 4, valueBytesMax: 16, totalBytesMax: 40 } as const
const refusing: StoreLimits = { ...LIMITS, whenFull: 'refuse' }
const dropping: StoreLimits = { ...LIMITS, whenFull: 'drop-oldest' }

let root = ''
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'convoke-store-'))
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})

/** Time passes between two writes. */
function tickingClock(): () => number {
  let nowMs = 1_000
  return () => ++nowMs
}
const directoryOf = (): string => join(root, `deep/${++count}`)
const filesIn = (directory: string, limits = refusing): FileStore =>
  new FileStore({ platform: nodePlatform, directory, limits, durability: 'durable' })

storeContract('memory', {
  refusing: async () => new MemoryStore({ limits: refusing, dateMs: tickingClock() }),
  dropping: async () => new MemoryStore({ limits: dropping, dateMs: tickingClock() }),
})
storeContract('files', {
  refusing: async () => filesIn(directoryOf()),
  dropping: async () =>
    new FileStore({
      platform: { ...nodePlatform, dateMs: tickingClock() },
      directory: directoryOf(),
      limits: dropping,
      durability: 'cache',
    }),
})

describe('files', () => {
  test('only the user of the host can read them or get into their folder', async () => {
    const directory = directoryOf()
    await filesIn(directory).set('a', 'x')
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    expect((await stat(join(directory, 'a.json'))).mode & 0o777).toBe(0o600)
    // Nothing but the value is left behind: no temporary file, no claim of a lock.
    await filesIn(directory).compareAndSwap('a', 'x', 'y')
    expect(await readdir(directory)).toEqual(['a.json', 'locks'])
    expect(await readdir(join(directory, 'locks'))).toEqual([])
    expect((await stat(join(directory, 'locks'))).mode & 0o777).toBe(0o700)
  })

  test('what another process wrote is seen at once', async () => {
    const directory = directoryOf()
    const [one, other] = [filesIn(directory), filesIn(directory)]
    await one.set('a', 'x')
    expect(await other.get('a')).toMatchObject({ kind: 'found', value: 'x' })
    expect(await other.compareAndSwap('a', 'x', 'y')).toBe(true)
    expect(await one.get('a')).toMatchObject({ value: 'y' })
  })

  test('of the swaps of several processes exactly one succeeds', async () => {
    const directory = directoryOf()
    const stores = Array.from({ length: 8 }, () => filesIn(directory))
    const swaps = await Promise.all(stores.map((store, index) => store.compareAndSwap('a', undefined, `${index}`)))
    expect(swaps.filter(Boolean)).toHaveLength(1)
    expect(await stores[0]?.get('a')).toMatchObject({ value: `${swaps.indexOf(true)}` })
  })

  test('a link, a folder, a file that others may write to and one that is too big are not used, each with its reason', async () => {
    const directory = directoryOf()
    const store = filesIn(directory)
    await store.set('good', 'x')
    await symlink(join(directory, 'good.json'), join(directory, 'link.json'))
    await mkdir(join(directory, 'folder.json'))
    await writeFile(join(directory, 'open.json'), 'x')
    await chmod(join(directory, 'open.json'), 0o666)
    await writeFile(join(directory, 'big.json'), 'x', { mode: 0o600 })
    await truncate(join(directory, 'big.json'), 17)
    const because = async (key: string): Promise<object> => store.get(key)
    expect(await because('link')).toEqual({ kind: 'damaged', because: 'it is a link' })
    expect(await because('folder')).toEqual({ kind: 'damaged', because: 'it is no regular file' })
    expect(await because('open')).toEqual({ kind: 'damaged', because: 'other users have access to it' })
    expect(await because('big')).toEqual({ kind: 'damaged', because: 'it has more than 16 bytes' })
    expect(await because('good')).toMatchObject({ kind: 'found' })
  })

  test('a file that grows while it is read, or belongs to somebody else, is not used', async () => {
    const directory = directoryOf()
    await filesIn(directory).set('a', 'x')
    const { files } = nodePlatform
    const growing = new FileStore({
      platform: { ...nodePlatform, files: { ...files, inspect: async (path) => facts(await files.inspect(path)) } },
      directory,
      limits: refusing,
      durability: 'cache',
    })
    function facts(known: Awaited<ReturnType<typeof files.inspect>>): typeof known {
      return known?.kind === 'file' ? { ...known, bytes: 0 } : known
    }
    expect(await growing.get('a')).toEqual({ kind: 'damaged', because: 'it changed while it was read' })
    const stranger = new FileStore({
      platform: { ...nodePlatform, userId: nodePlatform.userId + 1 },
      directory,
      limits: refusing,
      durability: 'cache',
    })
    expect(await stranger.get('a')).toEqual({ kind: 'damaged', because: 'it belongs to another user' })
    await expect(stranger.set('a', 'y')).rejects.toMatchObject({ failure: 'failed' })
  })

  test('a folder that is a link, or that others may enter, is not written to', async () => {
    const directory = directoryOf()
    await mkdir(directory, { recursive: true })
    const linked = directoryOf()
    await symlink(directory, linked)
    await expect(filesIn(linked).set('a', 'x')).rejects.toMatchObject({
      failure: 'failed',
      message: expect.stringContaining('no directory, or a link'),
    })
    await chmod(directory, 0o755)
    await expect(filesIn(directory).set('a', 'x')).rejects.toMatchObject({
      message: expect.stringContaining('other users have access to it'),
    })
    expect(await readdir(directory)).toEqual([])
  })

  test('a folder that cannot be made fails by code, and files of others in it are left alone', async () => {
    const blocked = join(root, 'file')
    await writeFile(blocked, 'x')
    await expect(filesIn(join(blocked, 'below')).set('a', 'x')).rejects.toThrow(StoreError)
    expect(await filesIn(join(root, 'nowhere')).keys()).toEqual([])
    const directory = directoryOf()
    await filesIn(directory).set('a', 'x')
    await writeFile(join(directory, 'README'), 'not ours')
    await link(join(directory, 'README'), join(directory, 'Upper.json'))
    expect(await filesIn(directory).keys()).toEqual(['a'])
  })
})

describe('room for a value', () => {
  const kept = [
    { key: 'new', bytes: 10, writtenAtMs: 3 },
    { key: 'old', bytes: 10, writtenAtMs: 1 },
    { key: 'mid', bytes: 10, writtenAtMs: 2 },
  ]
  const limits: StoreLimits = { keysMax: 3, totalBytesMax: 30, valueBytesMax: 30, whenFull: 'drop-oldest' }
  test.each([
    ['what fits drops nothing', { key: 'x', bytes: 5 }, { ...limits, keysMax: 4, totalBytesMax: 35 }, []],
    ['a key too many drops the oldest', { key: 'x', bytes: 0 }, limits, ['old']],
    ['bytes too many drop as many as they need', { key: 'x', bytes: 15 }, { ...limits, keysMax: 9 }, ['old', 'mid']],
    ['what it replaces counts no more', { key: 'old', bytes: 10 }, limits, []],
    ['what it replaces is never dropped', { key: 'old', bytes: 11 }, limits, ['mid']],
  ])('%s', (_, wanted, rules, drop) => {
    expect(planRoom(kept, wanted, rules)).toEqual({ kind: 'fits', drop })
  })

  test('values that were written at one time go by their keys', () => {
    const twins = ['b', 'a', 'c'].map((key) => ({ key, bytes: 0, writtenAtMs: 1 }))
    expect(planRoom(twins, { key: 'x', bytes: 0 }, limits)).toEqual({ kind: 'fits', drop: ['a'] })
  })

  test.each([
    ['nothing fits into nothing', { key: 'x', bytes: 0 }, { ...limits, keysMax: 0 }],
    ['one value may be too much', { key: 'x', bytes: 31 }, limits],
    ['a store that refuses drops nothing', { key: 'x', bytes: 0 }, { ...limits, whenFull: 'refuse' as const }],
  ])('%s', (_, wanted, rules) => {
    expect(planRoom(kept, wanted, rules)).toEqual({ kind: 'full' })
  })
})
