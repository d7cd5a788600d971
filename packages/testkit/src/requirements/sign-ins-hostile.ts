import type { Requirement } from './requirement.ts'

export const signInsHostile: readonly Requirement[] = [
  {
    id: 'auth.190',
    text: 'an authorization server that refuses a renewal for another reason than the grant ends no sign-in: limits, faults of the entry, and variables that one program lacks pass',
    milestone: 3,
    source: '03 §5.7, 10',
  },
  {
    id: 'auth.191',
    text: 'no clock and no lifetime asks for a person: set back or forward, lives of seconds, of nothing or below, tokens that come late',
    milestone: 3,
    source: '03 §5.7; 05 §E',
  },
  {
    id: 'auth.192',
    text: 'a write or removal that fails, before or after it is done, at any step of a renewal costs no sign-in, in this program and in others',
    milestone: 3,
    source: '03 §5.7, 9; 05 §E',
  },
  {
    id: 'auth.193',
    text: 'what an entry says of its client and its issuer holds for that client and that issuer only: no secret is shown for another client, and a private issuer that the entry names can be asked for renewals',
    milestone: 3,
    source: 'A07; A19',
  },
  {
    id: 'auth.194',
    text: 'a scope that a server misses and its authorization server does not know keeps nobody from signing in: it is asked for once, and then what was granted before',
    milestone: 3,
    source: '03 §5.9; SEP-2350',
  },
  {
    id: 'auth.195',
    text: 'that files cannot be written is found out before a page is opened',
    milestone: 3,
    source: '03 §5.5',
  },
  {
    id: 'auth.196',
    text: 'a state folder that was thrown away while a program ran is no lasting harm: it reads and writes with the key that is there now',
    milestone: 3,
    source: '03 §5.5; 05 §F',
  },
  {
    id: 'auth.197',
    text: 'a server that lets nobody in and publishes nothing is not told to want no sign-in',
    milestone: 3,
    source: 'issue 4, "saying the truth"',
  },
  {
    id: 'auth.198',
    text: 'connections that say nothing keep no browser out of the callback',
    milestone: 3,
    source: '03 §5.4',
  },
  {
    id: 'auth.199',
    text: 'who lets go of a sign-in sends nothing more, and has done so when what was sent is answered and saved',
    milestone: 3,
    source: '03 §5.7, 9; 05 §E',
  },
]
