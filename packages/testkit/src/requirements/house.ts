import type { Requirement } from './requirement.ts'

export const house: readonly Requirement[] = [
  {
    id: 'house.001',
    text: 'A test file that leaves a process, socket, server, timer, watcher or temporary entry behind fails, and the leak is named',
    milestone: 1,
  },
  {
    id: 'house.002',
    text: 'A promised behaviour that no test cites, an unknown id and a doubled id fail the gate and are named',
    milestone: 1,
  },
  {
    id: 'house.003',
    text: 'One run of the bench measures the floor and its peers in fresh processes and keeps medians and ratios to the floor of the same round',
    milestone: 1,
  },
  {
    id: 'house.004',
    text: 'A conformance score counts the scenarios of the suite’s own frozen lists, and one that checked nothing has not passed',
    milestone: 1,
  },
  {
    id: 'house.005',
    text: 'A real client counts as passed only if it was shown every tool and its echo came back',
    milestone: 1,
  },
  { id: 'house.050', text: 'Every error code has one row in docs/errors.md, and no row is a ghost', milestone: 1 },
  { id: 'house.051', text: 'Every TypeScript example of the documentation compiles', milestone: 1 },
]
