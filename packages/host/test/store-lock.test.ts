// The lock among processes: its decisions, and what it meets on the disk. Killed processes are in `store-lock-fuzz.test.ts`.
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { nodePlatform, type Platform } from '@convoke/wire'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { World } from '../../testkit/src/simulation/index.ts'
import {
  type ClaimOwner,
  type ClaimScene,
  claimText,
  judgeOwner,
  type OwnerSigns,
  planClaim,
  readClaim,
} from '../src/store/claim.ts'
import { FileLock, FileStore, LockError, type StoreLimits } from '../src/store/index.ts'

const limits: StoreLimits = { keysMax: 9, valueBytesMax: 99, totalBytesMax: 999, whenFull: 'refuse' }
const TOKEN = `0000000000-${'0'.repeat(32)}`

let root = ''
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'convoke-locks-'))
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})
const newFolder = (): string => join(root, String(++count))
const lockIn = (directory: string, platform: Platform = nodePlatform): FileLock => new FileLock({ platform, directory })
const filesIn = (directory: string, platform: Platform = nodePlatform): FileStore =>
  new FileStore({ platform, directory, limits, durability: 'durable', swapWaitMs: 300 })
/** A platform on whose disk nothing can be written. */
function readOnly(code: string): Platform {
  const refuse = async (): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }))
  return {
    ...nodePlatform,
    files: { ...nodePlatform.files, writeAtomic: refuse, makeDirectory: refuse, remove: refuse },
  }
}

describe('an owner', () => {
  const owner: ClaimOwner = { pid: 7, startedAt: '100', place: 'here' }
  const facts = { startedAt: '100', zombie: false }
  const signs: OwnerSigns = { place: 'here', answers: true, facts }
  test.each([
    ['that runs', owner, signs, 'alive'],
    ['that is no more', owner, { ...signs, answers: false, facts: undefined }, 'dead'],
    ['whose number somebody else has', owner, { ...signs, facts: { startedAt: '101', zombie: false } }, 'dead'],
    ['that has ended and was not asked for', owner, { ...signs, facts: { ...facts, zombie: true } }, 'dead'],
    ['elsewhere, whatever runs here', { ...owner, place: 'there' }, { ...signs, answers: false }, 'unseen'],
    ['that answers and cannot be looked at', owner, { ...signs, facts: undefined }, 'unseen'],
    ['of a system that knows no start times', { ...owner, startedAt: '' }, signs, 'unseen'],
    ['that nobody can read', undefined, signs, 'unseen'],
  ] as const)('%s', (_, who, what, verdict) => {
    expect(judgeOwner(who, what)).toBe(verdict)
  })

  test('is read back as it was written, and a text that names nobody is told', () => {
    expect(readClaim(claimText(owner))).toEqual(owner)
    for (const text of ['', '{', 'null', '[]', '{"pid":"7"}', '{"pid":0,"startedAt":"","place":""}', '{"pid":7}'])
      expect(readClaim(text)).toBeUndefined()
  })
})

describe('a contender', () => {
  const scene: ClaimScene = { arrival: '5', announced: undefined, isListed: false, others: [] }
  const announced: ClaimScene = { ...scene, announced: '5-a', isListed: true }
  test.each([
    ['that sees nobody announces itself', scene, 'announce'],
    ['that sees only younger ones announces itself', { ...scene, others: ['6-a'] }, 'announce'],
    ['that sees an elder waits', { ...scene, others: ['4-a', '6-a'] }, 'wait'],
    ['that is alone holds', announced, 'hold'],
    ['with younger ones stays', { ...announced, others: ['6-a'] }, 'stay'],
    [
      'with one that came in the same moment stays if its token is the lower',
      { ...announced, others: ['5-b'] },
      'stay',
    ],
    ['with one that came in the same moment steps back else', { ...announced, others: ['5-0'] }, 'withdraw'],
    ['with an elder steps back', { ...announced, others: ['4-a', '6-a'] }, 'withdraw'],
    ['whose claim was taken away announces itself anew', { ...announced, isListed: false }, 'announce'],
    [
      'whose claim was taken away steps back for an elder',
      { ...announced, isListed: false, others: ['4-a'] },
      'withdraw',
    ],
  ] as const)('%s', (_, what, step) => {
    expect(planClaim(what)).toBe(step)
  })
})

verifies('auth.006', async () => {
  const directory = newFolder()
  await filesIn(directory).set('a', 'kept')
  const store = filesIn(directory, readOnly('EROFS'))
  expect(await store.get('a')).toMatchObject({ kind: 'found', value: 'kept' })
  expect(await store.keys()).toEqual(['a'])
})

verifies('auth.007', async () => {
  const directory = newFolder()
  await filesIn(directory).set('a', 'kept')
  for (const code of ['EROFS', 'EACCES', 'ENOSPC']) {
    const store = filesIn(directory, readOnly(code))
    const tries = [
      store.lock('a'),
      store.compareAndSwap('a', 'kept', 'x'),
      store.compareAndSwap('a', 'kept', undefined),
    ]
    for (const end of await Promise.allSettled([...tries, store.set('a', 'x'), store.remove('a')])) {
      expect(end).toMatchObject({
        status: 'rejected',
        reason: { name: 'LockError', failure: 'failed', message: expect.stringContaining(code) },
      })
      expect(end.status === 'rejected' && end.reason).toBeInstanceOf(LockError)
    }
    expect(await store.get('a')).toMatchObject({ kind: 'found', value: 'kept' })
  }
})

verifies('auth.008', async () => {
  const directory = newFolder()
  const [one, other] = [filesIn(directory), filesIn(directory)]
  await using _ = await one.lock('a')
  await using __ = await one.lock('b', { waitMs: 0 })
  await using ___ = await other.lock('c', { waitMs: 0 })
  await expect(other.lock('a', { waitMs: 0 })).rejects.toMatchObject({ failure: 'busy' })
  // A name that begins alike is another name.
  await using ____ = await other.lock('a-b', { waitMs: 0 })
  await other.set('a', 'x')
  expect(await one.compareAndSwap('a', 'x', 'y')).toBe(true)
})

verifies('auth.009', async () => {
  const world = new World(1)
  const here = world.platform()
  const there: Platform = {
    ...here,
    pid: 1,
    processes: { ...here.processes, facts: () => ({ ...factsOf(here) }), place: () => 'elsewhere' },
  }
  function factsOf({ processes, pid }: Platform): NonNullable<ReturnType<Platform['processes']['facts']>> {
    const facts = processes.facts(pid)
    if (facts === undefined) throw new Error('no host')
    return facts
  }
  /** Virtual time passes until a promise has settled. */
  async function settled<Value>(promise: Promise<Value>, msMax = 300_000): Promise<Value> {
    let isSettled = false
    const done = promise.finally(() => {
      isSettled = true
    })
    done.catch(() => {})
    await world.until(() => isSettled, msMax)
    return done
  }
  const processes = {
    facts: (pid: number) => here.processes.facts(pid),
    place: () => 'simulated',
  } as Platform['processes']
  const mine = lockIn('/locks', { ...here, processes })
  const held = await settled(lockIn('/locks', there).acquire('a'))
  // Far longer than the silence that ends it: its heart beats.
  const waiting = mine.acquire('a', { waitMs: 120_000 })
  await expect(settled(waiting)).rejects.toMatchObject({ failure: 'busy' })
  expect(await settled(held.isHeld())).toBe(true)
  // The other machine is gone in this moment: its disk is written no more.
  world.files.put('/locks/kept', '')
  const [claim = ''] = world.files.paths.filter((path) => path.endsWith('.claim'))
  const text = (await settled(here.files.read(claim, 1_000))).toString('utf8')
  await settled(held[Symbol.asyncDispose]())
  world.files.put(claim, text)
  const beganAtMs = world.timeline.nowMs
  const next = await settled(mine.acquire('a', { waitMs: 300_000 }))
  expect(world.timeline.nowMs - beganAtMs).toBeGreaterThanOrEqual(30_000)
  expect(world.timeline.nowMs - beganAtMs).toBeLessThan(60_000)
  expect(await settled(next.isHeld())).toBe(true)
  await settled(next[Symbol.asyncDispose]())
  expect(world.files.paths).toEqual(['/locks/kept'])
  expect(world.timeline.timersLeft).toEqual([])
})

verifies('auth.010', async () => {
  const directory = newFolder()
  const lock = lockIn(directory)
  await (await lock.acquire('a'))[Symbol.asyncDispose]()
  const claim = (owner: ClaimOwner | string): Promise<void> =>
    writeFile(join(directory, `a.${TOKEN}.claim`), typeof owner === 'string' ? owner : claimText(owner), {
      mode: 0o600,
    })
  const place = nodePlatform.processes.place()
  const startedAt = nodePlatform.processes.facts(process.pid)?.startedAt ?? ''
  const busy = { name: 'LockError', failure: 'busy' }
  // This process itself, and those of whom nothing is known.
  await claim({ pid: process.pid, startedAt, place })
  await expect(lock.acquire('a', { waitMs: 0 })).rejects.toMatchObject({
    ...busy,
    message: expect.stringContaining(`process ${process.pid}`),
  })
  await claim({ pid: process.pid, startedAt, place: 'elsewhere' })
  await expect(lock.acquire('a', { waitMs: 0 })).rejects.toMatchObject(busy)
  for (const text of ['', 'x'.repeat(2_000)]) {
    await claim(text)
    await expect(lock.acquire('a', { waitMs: 0 })).rejects.toMatchObject(busy)
  }
  // The number has been given to another process since.
  await claim({ pid: process.pid, startedAt: `${startedAt}0`, place })
  await using held = await lock.acquire('a', { waitMs: 0 })
  expect(await readdir(directory)).toHaveLength(1)
  await rm(directory, { recursive: true })
  expect(await held.isHeld()).toBe(false)
})

verifies('auth.011', async () => {
  const directory = newFolder()
  await filesIn(directory).set('a', 'x')
  const locks = join(directory, 'locks')
  const claim = join(locks, `a.hold.${TOKEN}.claim`)
  const failed = (because: string): object => ({
    name: 'LockError',
    failure: 'failed',
    message: expect.stringContaining(because),
  })
  await symlink(join(directory, 'a.json'), claim)
  await expect(filesIn(directory).lock('a')).rejects.toMatchObject(failed('it is a link'))
  await rm(claim)
  await writeFile(claim, '', { mode: 0o600 })
  await chmod(claim, 0o644)
  await expect(filesIn(directory).lock('a')).rejects.toMatchObject(failed('other users have access to it'))
  expect(await readdir(locks)).toEqual([`a.hold.${TOKEN}.claim`])
  await rm(claim)
  await chmod(locks, 0o755)
  await expect(filesIn(directory).lock('a')).rejects.toMatchObject(failed('other users have access to it'))
  await expect(filesIn(directory).set('a', 'y')).rejects.toMatchObject(failed('other users have access to it'))
  await rm(locks, { recursive: true })
  await mkdir(join(root, 'real'), { mode: 0o700, recursive: true })
  await symlink(join(root, 'real'), locks)
  await expect(filesIn(directory).lock('a')).rejects.toMatchObject(failed('a link to one'))
  await rm(locks)
  const stranger = { ...nodePlatform, userId: nodePlatform.userId + 1 }
  await expect(filesIn(directory, stranger).lock('a')).rejects.toMatchObject(failed('it belongs to another user'))
  await chmod(join(directory, 'a.json'), 0o640)
  expect(await filesIn(directory).get('a')).toEqual({ kind: 'damaged', because: 'other users have access to it' })
  // It is there: nobody who expects nothing may write over it.
  expect(await filesIn(directory).compareAndSwap('a', undefined, 'y')).toBe(false)
})

verifies('auth.012', async () => {
  const directory = newFolder()
  await filesIn(directory).set('a', 'x')
  const put = async (name: string, ageMs: number): Promise<void> => {
    const path = join(directory, name)
    await writeFile(path, 'secret', { mode: 0o600 })
    await utimes(path, new Date(), new Date(Date.now() - ageMs))
  }
  await put('a.json.999999.1.tmp', 20_000)
  await put(`a.json.${process.pid}.7.tmp`, 20_000)
  await put(`b.json.${process.pid}.8.tmp`, 700_000)
  await put('b.json.999999.2.tmp', 0)
  await put('locks/a.999999.1.tmp', 20_000)
  await filesIn(directory).set('b', 'x')
  const kept = [
    'a.json',
    `a.json.${process.pid}.7.tmp`, // this process may be writing it
    'b.json',
    'b.json.999999.2.tmp', // a process elsewhere may
    `b.json.${process.pid}.8.tmp`, // and clocks jump
    'locks',
  ]
  expect((await readdir(directory)).sort()).toEqual(kept.sort())
  expect(await readdir(join(directory, 'locks'))).toEqual([])
})

verifies('auth.013', async () => {
  const directory = newFolder()
  const [one, other] = [filesIn(directory), filesIn(directory)]
  await one.set('a', 'x')
  // A swap stands between its look and its write while somebody signs out.
  let removal: Promise<void> | undefined
  const slow: Platform = {
    ...nodePlatform,
    files: {
      ...nodePlatform.files,
      read: async (path, bytesMax) => {
        const content = await nodePlatform.files.read(path, bytesMax)
        if (path.endsWith('a.json')) {
          removal ??= other.remove('a')
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
        return content
      },
    },
  }
  expect(await filesIn(directory, slow).compareAndSwap('a', 'x', 'y')).toBe(true)
  await removal
  expect(await one.get('a')).toEqual({ kind: 'absent' })
})

test('what a lock has left because the disk failed is taken away when it works again', async () => {
  const directory = newFolder()
  let isBroken = false
  const { remove } = nodePlatform.files
  const platform: Platform = {
    ...nodePlatform,
    files: {
      ...nodePlatform.files,
      remove: (path) => (isBroken ? Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' })) : remove(path)),
    },
  }
  const lock = lockIn(directory, platform)
  const held = await lock.acquire('a')
  isBroken = true
  await expect(held[Symbol.asyncDispose]()).rejects.toMatchObject({ name: 'LockError', failure: 'failed' })
  await expect(lockIn(directory).acquire('a', { waitMs: 0 })).rejects.toMatchObject({ failure: 'busy' })
  isBroken = false
  await using _ = await lock.acquire('a', { waitMs: 0 })
  expect(await readdir(directory)).toHaveLength(1)
})
