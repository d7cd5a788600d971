// The names of everything that a simulation checks, by the requirement that each belongs to.

/** A failing run prints the name first. */
export const INVARIANTS = {
  'simulation.001': [
    'no process is without an owner',
    'no connection is without an owner',
    'a process that is ended ends',
    'an old process is gone before the next one starts',
  ],
  'simulation.002': [
    'no event comes before the publication',
    'an event tells what is published',
    'a catalog changes only with its content',
  ],
  'simulation.003': ['no call is rerouted', 'no call is run twice', 'the configured filter holds for calls'],
  'simulation.004': [
    'a binding never changes',
    'a binding can be disposed of',
    'a revision stands for one content',
    'a revision changes only with the content',
    'the configured filter holds for listings',
  ],
  'simulation.005': ['one start per identity', 'one recovery for all who need it'],
  'simulation.006': [
    'every state that is not ready has a reason',
    'a status does not lie',
    'every start comes to an end',
  ],
  'simulation.007': ['looking starts nothing'],
  'simulation.008': [
    'a settled call was told truthfully',
    'every end of a call is an outcome',
    'every caller is answered',
    'no failure goes unheard',
  ],
  'simulation.009': ['a close ends', 'no process is left after the close', 'nothing is left after the close'],
  'simulation.010': ['the simulation itself works'],
  'simulation.011': [
    'a host can be made',
    'a valid configuration is taken',
    'a refresh does not fail for what a server does',
    'what is published is what was configured',
    'a changed server is replaced',
    'what is well again comes back',
    'a binding shows what the server lists, filtered',
    'a binding shows the last listing',
  ],
  'simulation.012': ['a token goes only to its origins', 'nobody is asked when the policy says never'],
} as const

/** The name of something that must be true. */
export type Invariant = (typeof INVARIANTS)[keyof typeof INVARIANTS][number]
