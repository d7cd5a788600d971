import type { Requirement } from './requirement.ts'

/** The races that the design names. Each is run with many seeds; the seed decides who comes first. */
export const races: readonly Requirement[] = [
  {
    id: 'race.001',
    text: 'A candidate that is given up before its publication has started nothing and said nothing',
    milestone: 2,
  },
  {
    id: 'race.002',
    text: 'A refresh that is given up leaves the wish for a reconnect standing, and a close goes on without its caller',
    milestone: 2,
  },
  {
    id: 'race.003',
    text: 'A start that is cancelled at any moment is cancelled, with nothing running, or had been ready before',
    milestone: 2,
  },
  { id: 'race.004', text: 'A slow old listing never takes the place of a newer one', milestone: 2 },
  { id: 'race.005', text: 'A call that was prepared from a listing runs by that listing or not at all', milestone: 2 },
  {
    id: 'race.006',
    text: 'A call goes to the connection that was shown, whatever replaces it meanwhile, or nowhere',
    milestone: 2,
  },
  {
    id: 'race.007',
    text: 'Hints of a cached listing grant nothing, and a tool that turns out to be another one is not called',
    milestone: 2,
  },
  {
    id: 'race.008',
    text: 'A cached catalog that expires while a view is being taken is kept in that view',
    milestone: 2,
  },
  { id: 'race.009', text: 'Each question is decided by one trust policy, never by a mixture of two', milestone: 2 },
  { id: 'race.010', text: 'Servers that use the same id for their questions each get their own answer', milestone: 2 },
  { id: 'race.011', text: 'A question ends with the call that it belongs to, and no other does', milestone: 2 },
  { id: 'race.012', text: 'A start that nobody wants any more leaves no process', milestone: 2 },
  {
    id: 'race.013',
    text: 'A refused sign-in is not tried again while its store is contended, and a live session outlasts a store that cannot be read',
    milestone: 2,
  },
  {
    id: 'race.014',
    text: 'A session that has renewed its own sign-in is kept when the store says the same',
    milestone: 2,
  },
  {
    id: 'race.015',
    text: 'Credentials are renewed and a session is made anew at the same time, and every call runs once',
    milestone: 2,
  },
  {
    id: 'race.016',
    text: 'A call that has timed out while its credentials are renewed is never sent again',
    milestone: 2,
  },
  {
    id: 'race.017',
    text: 'Many calls that find the session forgotten share one new one, and each runs once',
    milestone: 2,
  },
  {
    id: 'race.018',
    text: 'A listing without end is given up at its limit, also when changes are announced meanwhile',
    milestone: 2,
  },
  {
    id: 'race.019',
    text: 'A server that is not hosted can pretend no connector, and never sees the token of the account',
    milestone: 2,
  },
  {
    id: 'race.020',
    text: 'What was listed in an environment is not used in another one of its name',
    milestone: 2,
  },
  {
    id: 'race.021',
    text: 'A secret of the environment is in no status, event, error or file, whatever goes wrong',
    milestone: 2,
  },
  {
    id: 'race.022',
    text: 'Whoever waits for a required server does not keep a question from being answered',
    milestone: 2,
  },
  { id: 'race.023', text: 'Looking at any moment starts nothing and hurries nothing', milestone: 2 },
  {
    id: 'race.024',
    text: 'All views wait for slow optional servers within one grace, not within one each',
    milestone: 2,
  },
]
