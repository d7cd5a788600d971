import type { Requirement } from './requirement.ts'

export const accounts: readonly Requirement[] = [
  {
    id: 'auth.170',
    text: 'a host is signed in by a token that code holds: its id reveals nothing of it, and another token, or the same one supplied anew, is a new sign-in',
    milestone: 3,
    source: '00 decision 36',
  },
  {
    id: 'auth.171',
    text: 'a token in a variable is read when it is asked for: another value is a new sign-in, told once, and what no header can carry is told as that',
    milestone: 3,
    source: '00 decision 36',
  },
  {
    id: 'auth.172',
    text: 'what the callbacks of an embedder give is looked at before it is used: a failure of theirs costs the request that needed a token, and changes that nobody told are found',
    milestone: 3,
    source: '00 decision 36; A49',
  },
  {
    id: 'auth.173',
    text: 'origins, ids and tokens of an account are checked when it is made',
    milestone: 3,
    source: '00 decision 36; A19',
  },
  {
    id: 'auth.174',
    text: 'a person signs in to the account of a host with a browser; it is kept with the sign-ins of servers, speaks to hosted servers, and its status says who, until when and where',
    milestone: 3,
    source: 'issue 4, "Account"',
  },
  {
    id: 'auth.175',
    text: 'the token of the account goes to hosted servers of declared origins alone: to no other server, no other origin, no redirect, and into no event, status or error',
    milestone: 3,
    source: '00 decision 36; A08, A49',
  },
  {
    id: 'auth.176',
    text: 'a new sign-in, even of the same account, makes new connections, and one that began before never speaks as it',
    milestone: 3,
    source: '00 decisions 18 and 36',
  },
  {
    id: 'auth.177',
    text: 'a refresh of the same grant makes no connection anew, and two programs with one account do it once',
    milestone: 3,
    source: '00 decision 36; 03 §10 "Refresh"',
  },
  {
    id: 'auth.178',
    text: 'a sign-out takes the account away from hosted servers at once, before the authorization server is told',
    milestone: 3,
    source: '00 decision 36; RFC 7009',
  },
  {
    id: 'auth.179',
    text: 'a sign-in or sign-out of the account by another program is found by the next request or look, one look a second, and is told once',
    milestone: 3,
    source: '05 §D, §E',
  },
  {
    id: 'auth.180',
    text: 'an account whose grant the authorization server has ended asks for a person, is kept, and is never renewed again; a store that cannot be read is no sign-out',
    milestone: 3,
    source: '00 decision 39; 03 §5.5',
  },
  {
    id: 'auth.181',
    text: 'a hosted server that refuses every token costs one renewal of the account',
    milestone: 3,
    source: '03 §5.8; A59.2',
  },
  {
    id: 'auth.182',
    text: 'no entry of a configuration speaks with the sign-in of the account, whatever its name and URL are',
    milestone: 3,
    source: 'A08',
  },
  {
    id: 'auth.183',
    text: 'a person signs in with a code on another device, and it is known who that was',
    milestone: 3,
    source: 'RFC 8628; issue 4, "Account"',
  },
  {
    id: 'auth.184',
    text: 'who waits for a code asks no faster than told: pauses begin with the interval, grow by 5 s on slow_down and double on failures, and never become shorter',
    milestone: 3,
    source: 'RFC 8628 3.5',
  },
  {
    id: 'auth.185',
    text: 'a code that is refused, lapses, or is given up ends the sign-in with its reason, and what was there stays',
    milestone: 3,
    source: 'RFC 8628 3.5',
  },
  {
    id: 'auth.186',
    text: 'an answer with a code is looked at like every other: addresses, codes and times that cannot be used are refused before anybody sees them, and nothing secret is shown',
    milestone: 3,
    source: 'RFC 8628 3.2; A19, A49',
  },
]
