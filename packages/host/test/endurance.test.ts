// A few hundred connections and configurations; the full counts are `npm run endurance`.
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'
import { type EnduranceSample, endure, growthIn } from '../../testkit/src/endurance.ts'

verifies(
  'simulation.020',
  async () => {
    const samples = await endure({ reconnects: 100, restarts: 4, generations: 60 })
    expect(samples.map(({ part }) => part)).toEqual(expect.arrayContaining(['reconnects', 'restarts', 'generations']))
    // The heap is judged where the garbage can be collected on demand; here nothing else may be left.
    expect(growthIn(samples, Number.POSITIVE_INFINITY)).toEqual([])
    // And what would be growth is called that.
    const first = samples.find(({ part }) => part === 'reconnects') as EnduranceSample
    expect(growthIn([first, { ...first, heapMb: first.heapMb + 9, descriptors: first.descriptors + 9 }], 2)).toEqual([
      expect.stringContaining('reconnects: heapMb grew'),
      expect.stringContaining('reconnects: descriptors grew'),
      'restarts: not run',
      'generations: not run',
    ])
  },
  60_000,
)
