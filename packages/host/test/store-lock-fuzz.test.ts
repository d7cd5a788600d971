// The lock among processes that are killed at any moment. CONVOKE_LOCK_ROUNDS sets how many are: 40 in the gate, 1,000 in soak. CONVOKE_LOCK_SEED repeats a run
// as far as the moments of other processes allow it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { nodePlatform } from '@convoke/wire'
import { afterAll, beforeAll, expect } from 'vitest'
import { FileLock, FileStore } from '../src/store/index.ts'
import type { LockTask } from './store-lock-child.ts'

const ROUNDS = Number(process.env['CONVOKE_LOCK_ROUNDS'] ?? 40)
const SEED = Number(process.env['CONVOKE_LOCK_SEED'] ?? Date.now() % 1_000_000)
const LIMIT_MS = 120_000 + ROUNDS * 5_000
const CONTENDERS = 4
/** What the survivors have to do after each kill, and how long they may take on a loaded machine. */
const PROGRESS = 2
const PROGRESS_MS_MAX = 20_000
const KILL_MS_MAX = 40

let root = ''
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'convoke-lock-'))
})
afterAll(async () => {
  await rm(root, { recursive: true, force: true })
})

/** The same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A folder with a log and a sum. */
function arena(): string {
  const directory = join(root, String(++count))
  mkdirSync(directory, { mode: 0o700 })
  writeFileSync(join(directory, 'sum'), '0')
  appendFileSync(join(directory, 'log'), '')
  return directory
}
const linesOf = (directory: string): string[] =>
  readFileSync(join(directory, 'log'), 'utf8').split('\n').filter(Boolean)

/** A contender that is loaded and waits for its sign. */
async function contender(directory: string, task: LockTask): Promise<ChildProcess> {
  const file = join(import.meta.dirname, 'store-lock-child.ts')
  const child = spawn(process.execPath, ['--conditions=@convoke/source', file, directory, task], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin?.on('error', () => {})
  if (child.stdout === null) throw new Error('no pipe')
  await once(child.stdout, 'data')
  return child
}
async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
async function finish(child: ChildProcess): Promise<void> {
  const gone = child.exitCode === null ? once(child, 'exit') : undefined
  child.stdin?.end()
  await gone
  expect(child.exitCode).toBe(0)
}
const go = (child: ChildProcess): boolean | undefined => child.stdin?.write('go\n')

verifies(
  ['auth.001', 'auth.002'],
  async () => {
    const random = randomOf(SEED)
    const directory = arena()
    let longestMs = 0
    const pool = await Promise.all(Array.from({ length: CONTENDERS }, () => contender(directory, 'count')))
    pool.forEach(go)
    let next = contender(directory, 'count')
    const total = (): number => linesOf(directory).length
    for (let round = 0; round < ROUNDS; round++) {
      const fresh = await next
      next = contender(directory, 'count')
      await new Promise((resolve) => setTimeout(resolve, random() * KILL_MS_MAX))
      const victim = Math.floor(random() * CONTENDERS)
      await kill(pool[victim] as ChildProcess)
      const [before, killedAtMs] = [total(), performance.now()]
      pool[victim] = fresh
      go(fresh)
      await expect
        .poll(total, { timeout: PROGRESS_MS_MAX, interval: 5, message: `seed ${SEED}, round ${round}` })
        .toBeGreaterThanOrEqual(before + PROGRESS)
      longestMs = Math.max(longestMs, performance.now() - killedAtMs)
    }
    go(await next)
    await Promise.all([...pool, await next].map(finish))
    const lines = linesOf(directory)
    const of = (word: string): string[][] => lines.map((line) => line.split(' ')).filter(([first]) => first === word)
    expect(of('violation'), `seed ${SEED}`).toEqual([])
    // Each count is the one before it and one more, or that of a victim lies between which could not tell of it any more.
    const counted = of('counted').map(([, , sum]) => Number(sum))
    for (const [at, sum] of counted.entries()) expect(sum - (counted[at - 1] ?? 0)).toBeGreaterThanOrEqual(1)
    const store = new FileStore({
      platform: nodePlatform,
      directory: join(directory, 'store'),
      limits: { keysMax: 9, valueBytesMax: 99, totalBytesMax: 999, whenFull: 'refuse' },
      durability: 'durable',
    })
    const swapped = await store.get('sum')
    const sums = [
      ['counted', Number(readFileSync(join(directory, 'sum'), 'utf8'))],
      ['swapped', swapped.kind === 'found' ? Number(swapped.value) : 0],
    ] as const
    for (const [word, sum] of sums) {
      expect(sum, `${word}, seed ${SEED}`).toBeGreaterThanOrEqual(of(word).length)
      expect(sum, `${word}, seed ${SEED}`).toBeLessThanOrEqual(of(word).length + ROUNDS)
    }
    // The claims of the dead are taken away by whoever comes next.
    await (await new FileLock({ platform: nodePlatform, directory: join(directory, 'locks') }).acquire('sum'))[
      Symbol.asyncDispose
    ]()
    expect(readdirSync(join(directory, 'locks')).filter((name) => !name.endsWith('.tmp'))).toEqual([])
    process.stdout.write(
      `lock: seed ${SEED}, ${ROUNDS} kills, ${counted.length} counts, ${of('swapped').length} swaps, ` +
        `${PROGRESS} steps took ${Math.round(longestMs)} ms at most\n`,
    )
  },
  LIMIT_MS,
)

verifies(
  'auth.003',
  async () => {
    const directory = arena()
    const holder = await contender(directory, 'hold')
    go(holder)
    await expect.poll(() => linesOf(directory), { timeout: 20_000 }).toEqual([`holds ${holder.pid}`])
    const lock = new FileLock({ platform: nodePlatform, directory: join(directory, 'locks') })
    // A process that is stopped holds what it holds.
    holder.kill('SIGSTOP')
    await expect(lock.acquire('sum', { waitMs: 300 })).rejects.toMatchObject({
      name: 'LockError',
      failure: 'busy',
      message: expect.stringContaining(`process ${holder.pid}`),
    })
    await using _ = await lock.acquire('other', { waitMs: 0 })
    const next = lock.acquire('sum')
    await kill(holder)
    await using held = await next
    expect(await held.isHeld()).toBe(true)
  },
  60_000,
)

verifies(
  'auth.004',
  async () => {
    const directory = arena()
    const writers = await Promise.all(Array.from({ length: 12 }, () => contender(directory, 'write')))
    const ends = writers.map((writer) => once(writer, 'exit'))
    writers.forEach(go)
    await Promise.all(ends)
    expect(writers.map(({ exitCode }) => exitCode)).toEqual(writers.map(() => 0))
    const expected = writers.flatMap(({ pid }) => Array.from({ length: 20 }, (_, n) => `of-${pid}-${n}.json`))
    const folder = join(directory, 'store')
    expect(readdirSync(folder).sort()).toEqual([...expected, 'locks'].sort())
    for (const file of expected) {
      const [, pid, n] = /^of-(\d+)-(\d+)\.json$/.exec(file) ?? []
      expect(readFileSync(join(folder, file), 'utf8')).toBe(`${pid} ${n}`)
    }
    expect(existsSync(join(directory, 'sum'))).toBe(true)
  },
  120_000,
)

verifies(
  'auth.005',
  async () => {
    const directory = arena()
    const contenders = await Promise.all(Array.from({ length: 12 }, () => contender(directory, 'count')))
    contenders.forEach(go)
    const counts = (): number[] =>
      contenders.map(({ pid }) => linesOf(directory).filter((line) => line.startsWith(`counted ${pid} `)).length)
    // Everybody has its turn, again and again.
    await expect.poll(() => Math.min(...counts()), { timeout: 120_000, interval: 100 }).toBeGreaterThanOrEqual(3)
    await Promise.all(contenders.map(finish))
    expect(linesOf(directory).filter((line) => line.startsWith('violation'))).toEqual([])
  },
  180_000,
)
