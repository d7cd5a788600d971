// `npm run endurance -- [--reconnects N] [--restarts N] [--generations N]`: a flat heap and nothing left after many connections and configurations. Part of soak.
import './assert-node.ts'
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { endure, growthIn } from '../packages/testkit/src/endurance.ts'
import { report } from './result.ts'

/** Growth of the heap from the first sample of a part to its last that is still noise, in MB. */
const HEAP_MB_MAX = 2

if (!('gc' in globalThis)) {
  const { status } = spawnSync(process.execPath, ['--expose-gc', ...process.execArgv, ...process.argv.slice(1)], {
    stdio: 'inherit',
  })
  process.exit(status ?? 1)
}
const { values } = parseArgs({
  options: {
    reconnects: { type: 'string', default: '10000' },
    restarts: { type: 'string', default: '300' },
    generations: { type: 'string', default: '2000' },
  },
})
const startedAtMs = performance.now()
process.stdout.write('part         done   heap MB  descriptors  children  timers\n')
const samples = await endure({
  reconnects: Number(values.reconnects),
  restarts: Number(values.restarts),
  generations: Number(values.generations),
  onSample: ({ part, done, heapMb, descriptors, children, timers }) => {
    const cells = [
      part.padEnd(11),
      String(done).padStart(6),
      heapMb.toFixed(2).padStart(9),
      String(descriptors).padStart(12),
    ]
    process.stdout.write(`${[...cells, String(children).padStart(9), String(timers).padStart(7)].join(' ')}\n`)
  },
})
const grown = growthIn(samples, HEAP_MB_MAX)
for (const line of grown) process.stdout.write(`${line}\n`)
const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(0)
process.stdout.write(`endurance: ${grown.length === 0 ? 'flat' : 'something grew'}, ${seconds} s\n`)
await report(grown.length === 0 ? 1 : 0, grown.length)
