import type { Requirement } from './requirement.ts'

export const turns: readonly Requirement[] = [
  {
    id: 'turn.001',
    text: 'what has to be quick runs before the turn can be seen, with the usage so far; the rest runs as its first work, can be interrupted, and knows no usage',
    milestone: 4,
  },
  {
    id: 'turn.002',
    text: 'a contributor that does not need the servers leaves what is outdated as it is, and one that needs them finds them brought up to date',
    milestone: 4,
  },
  {
    id: 'turn.003',
    text: 'when nothing has changed, bringing up to date publishes nothing and keeps the connections',
    milestone: 4,
  },
  {
    id: 'turn.004',
    text: 'a turn that is interrupted in its start ends at once, tells why, and leaves the servers to be brought up to date',
    milestone: 4,
  },
  {
    id: 'turn.005',
    text: 'a reconnect that was asked for is done before a contributor that needs the servers runs, and gives another connection',
    milestone: 4,
  },
  {
    id: 'turn.006',
    text: 'servers and plugins that a turn requires are waited for by each of its steps, and those that sleep are started',
    milestone: 4,
  },
  {
    id: 'turn.007',
    text: 'a turn can be interrupted at every wait: each of them ends soon, the thread lives on, and nothing stays open',
    milestone: 4,
  },
  {
    id: 'turn.008',
    text: 'whether a call needs consent follows its mode, hints that are believed, the trust of the host and what was approved before',
    milestone: 4,
  },
  {
    id: 'turn.009',
    text: 'reviewers are asked in order before the person, a denial calls nothing and says why, an approval for the thread is remembered for that tool alone, and an abort ends the turn',
    milestone: 4,
  },
  {
    id: 'turn.010',
    text: 'a new turn replaces the one that runs, also one that is only beginning, and tells its contributors',
    milestone: 4,
  },
  {
    id: 'turn.011',
    text: 'a step never changes: its tools and calls are those of its capture, calls that run go on in the next step, and a step that is over calls nothing',
    milestone: 4,
  },
  {
    id: 'turn.012',
    text: 'the model is told what is new or other in the world, and what is gone, and nothing twice',
    milestone: 4,
  },
  {
    id: 'turn.013',
    text: 'native tools stand beside those of servers under names that no server can have, run in this process, are limited in number, and their failures are answers',
    milestone: 4,
  },
  {
    id: 'turn.014',
    text: 'steps between which nothing changed show the very same list of tools',
    milestone: 4,
  },
  {
    id: 'turn.015',
    text: 'servers that a thread contributes are seen by that thread alone, are shared by threads that contribute the same, and end with the last of them',
    milestone: 4,
  },
  {
    id: 'turn.016',
    text: 'when the account changes, contributors drop what they know before anything is waited for, and the thread is projected anew without a turn',
    milestone: 4,
  },
  {
    id: 'turn.017',
    text: 'extensions hear of a thread: its start, its resumption, each time it is idle and why, and its end',
    milestone: 4,
  },
  {
    id: 'turn.018',
    text: 'changed settings are told at once, with those before and after',
    milestone: 4,
  },
  {
    id: 'turn.019',
    text: 'a publication that fails or is cancelled is done by the next step',
    milestone: 4,
  },
  {
    id: 'turn.020',
    text: 'plugins are named on the tools of their connectors for the thread that has them; caches and other threads keep the tool as it is, and a server that is not hosted claims no connector',
    milestone: 4,
  },
  {
    id: 'turn.021',
    text: 'selected plugins bring their servers and connectors in their order; where plugins are off, their roots are named as disabled and nothing is loaded',
    milestone: 4,
  },
  {
    id: 'turn.022',
    text: 'observers hear of each call: its start, its end, how it ended and how long it took, and never its arguments',
    milestone: 4,
  },
  {
    id: 'turn.023',
    text: 'a host that closes ends its threads, their turns and calls, and begins none any more',
    milestone: 4,
  },
  {
    id: 'turn.024',
    text: 'a warning is told once per thread and text',
    milestone: 4,
  },
  {
    id: 'turn.025',
    text: 'tools that their server hides from models, and those of servers that the configuration keeps from models, are in no step',
    milestone: 4,
  },
]
