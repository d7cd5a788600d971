// One contender of the tests of the lock: does what it is told until its input ends, or until it is killed. Everything it did stands in a log that is only ever
// added to, a line at a time.
import { appendFileSync, linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodePlatform } from '@convoke/wire'
import { FileLock, FileStore } from '../src/store/index.ts'

/** What a contender does. */
export type LockTask = 'count' | 'write' | 'hold'

const [directory = '', task = 'count'] = process.argv.slice(2)
const LIMITS = { keysMax: 1_000, valueBytesMax: 1_000, totalBytesMax: 1_000_000, whenFull: 'refuse' } as const
const WRITTEN = 20
const me = process.pid
const tell = (line: string): void => appendFileSync(join(directory, 'log'), `${line}\n`)
const moment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.random() * 3))

const store = new FileStore({
  platform: nodePlatform,
  directory: join(directory, 'store'),
  limits: LIMITS,
  durability: 'durable',
})
const lock = new FileLock({ platform: nodePlatform, directory: join(directory, 'locks') })

let isOver = false
process.stdin.on('end', () => {
  isOver = true
})

/** Only one process can make the marker; who finds one looks whether its maker lives. */
function enter(): void {
  const marker = join(directory, 'inside')
  const mine = `${marker}.${me}`
  writeFileSync(mine, String(me))
  try {
    linkSync(mine, marker)
  } catch {
    const other = Number(readFileSync(marker, 'utf8'))
    const facts = nodePlatform.processes.facts(other)
    if (facts !== undefined && !facts.zombie) tell(`violation ${me} meets ${other}`)
    rmSync(marker)
    linkSync(mine, marker)
  }
}

/** Reads a sum, keeps it for a while, and writes it back: two holders would lose a count. */
async function count(): Promise<void> {
  await using held = await lock.acquire('sum')
  enter()
  const sum = join(directory, 'sum')
  const before = Number(readFileSync(sum, 'utf8'))
  await moment()
  if (!(await held.isHeld())) tell(`violation ${me} holds no more`)
  writeFileSync(`${sum}.${me}`, String(before + 1))
  renameSync(`${sum}.${me}`, sum)
  tell(`counted ${me} ${before + 1}`)
  rmSync(join(directory, 'inside'))
}

async function swap(): Promise<void> {
  for (;;) {
    const found = await store.get('sum')
    const before = found.kind === 'found' ? found.value : undefined
    if (await store.compareAndSwap('sum', before, String(Number(before ?? 0) + 1))) break
  }
  tell(`swapped ${me}`)
}

async function work(): Promise<void> {
  switch (task) {
    case 'count':
      while (!isOver) {
        await count()
        await swap()
      }
      return
    case 'write':
      for (let n = 0; n < WRITTEN; n++) await store.set(`of-${me}-${n}`, `${me} ${n}`)
      return
    case 'hold': {
      await using _ = await lock.acquire('sum')
      tell(`holds ${me}`)
      await new Promise((resolve) => process.stdin.once('end', resolve))
      return
    }
    default:
      throw new Error(`no task ${task}`)
  }
}

process.stdout.write('ready\n')
await new Promise((resolve) => process.stdin.once('data', resolve))
await work()
process.exit(0)
