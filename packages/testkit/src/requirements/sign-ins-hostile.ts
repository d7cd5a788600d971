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
]
