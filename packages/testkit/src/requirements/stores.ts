import type { Requirement } from './requirement.ts'

/** Where sign-ins are kept, and how several processes share it. */
export const stores: readonly Requirement[] = [
  {
    id: 'auth.001',
    text: 'A lock has never two holders, whatever processes are killed at whatever moment',
    milestone: 3,
    source: '03 §5.6, 03 §10 Locks',
  },
  {
    id: 'auth.002',
    text: 'No change that was made under a lock or by a swap is lost, but for that of a process that was killed in it',
    milestone: 3,
    source: '03 §10 Locks',
  },
  {
    id: 'auth.003',
    text: 'Whoever is stopped still holds a lock, and whoever is dead holds it no more',
    milestone: 3,
    source: '03 §5.6',
  },
  {
    id: 'auth.004',
    text: 'Twelve processes that write different keys of one store at once lose nothing',
    milestone: 3,
    source: '03 §10 Locks',
  },
  {
    id: 'auth.005',
    text: 'Of twelve processes that want the same lock all the time each has its turn',
    milestone: 3,
    source: '03 §5.6',
  },
]
