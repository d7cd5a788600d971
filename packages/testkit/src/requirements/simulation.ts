import type { Requirement } from './requirement.ts'

/** What must be true of a host whatever is done to it; each is checked after every step of a random walk in a simulated world. */
export const simulation: readonly Requirement[] = [
  {
    id: 'simulation.001',
    text: 'Every process and every connection has an owner, and one that is ended is gone before its successor starts',
    milestone: 2,
  },
  {
    id: 'simulation.002',
    text: 'No event comes before the publication, and each tells what is published',
    milestone: 2,
  },
  {
    id: 'simulation.003',
    text: 'No call is rerouted, run twice, or sent past the configured filter',
    milestone: 2,
  },
  { id: 'simulation.004', text: 'A binding never changes, and its revision stands for what it shows', milestone: 2 },
  {
    id: 'simulation.005',
    text: 'An identity is started once at a time, and its session is renewed once for all who need it',
    milestone: 2,
  },
  { id: 'simulation.006', text: 'Every state has a reason, does not lie, and no start lasts for ever', milestone: 2 },
  { id: 'simulation.007', text: 'Looking starts nothing', milestone: 2 },
  { id: 'simulation.008', text: 'Every caller is answered, and a settled call was told truthfully', milestone: 2 },
  { id: 'simulation.009', text: 'A close ends, and nothing is left after it', milestone: 2 },
  { id: 'simulation.010', text: 'The same seed gives the same run, line by line', milestone: 2 },
  {
    id: 'simulation.011',
    text: 'A host whose servers are well again shows exactly what its configuration says',
    milestone: 2,
  },
  {
    id: 'simulation.012',
    text: 'A token goes only to its origins, and nobody is asked when the policy says never',
    milestone: 2,
  },
  {
    id: 'simulation.020',
    text: 'Reconnects, restarts and new generations leave no descriptor, child or timer behind',
    milestone: 2,
  },
]
