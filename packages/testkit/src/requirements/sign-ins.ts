import type { Requirement } from './requirement.ts'

export const signIns: readonly Requirement[] = [
  {
    id: 'auth.130',
    text: 'a stored sign-in is usable, refreshable or neither by what is in it: its ends, its tokens, its client, and what became of its refresh token',
    milestone: 3,
    source: '03 §5.10, §10 "OAuth storage", "Status"',
  },
  {
    id: 'auth.131',
    text: 'what happens to a token is decided on what the store holds under its lock: adopted, refreshed, or left to a person; one refresh and at most one adoption for each request',
    milestone: 3,
    source: '03 §5.7, §5.8; 00 decision 39',
  },
  {
    id: 'auth.132',
    text: 'an answer to a refresh leaves what it does not mention as it was, and is noted for good when it is a refusal',
    milestone: 3,
    source: 'RFC 6749 5.1 and 6; 03 §5.7, 8 and 10',
  },
  {
    id: 'auth.133',
    text: 'sign-ins are kept by issuer, resource, client and server: none is ever used for another of them',
    milestone: 3,
    source: '00 decision 39; MCP 2026-07-28, Authorization Server Binding',
  },
  {
    id: 'auth.134',
    text: 'the status of a sign-in tells what is true of it and why, by what is kept and without asking anybody',
    milestone: 3,
    source: '03 §5.10, §10 "Status"',
  },
  {
    id: 'auth.135',
    text: 'calls and programs that need a new token at the same time ask the authorization server once, and all have the answer',
    milestone: 3,
    source: "03 §10 'Refresh'; 05 §E",
  },
  {
    id: 'auth.136',
    text: 'a renewal marks what it is about to send, saves what it gets before anybody sends it, and goes on when whoever asked for it has left',
    milestone: 3,
    source: '03 §5.7, 2 and 9',
  },
  {
    id: 'auth.137',
    text: 'a refresh token that was refused for good is kept, marked, and never sent again by anybody; a person has to sign in',
    milestone: 3,
    source: '00 decision 39; 03 §5.7, 10; A59.5',
  },
  {
    id: 'auth.138',
    text: 'while a renewal does not work the token in hand is used to its end; tries are paused and go on, and the sign-in stays',
    milestone: 3,
    source: '05 §E; A59',
  },
  {
    id: 'auth.139',
    text: 'a sign-out or a new sign-in during a renewal wins: nothing is brought back, and nothing overwritten',
    milestone: 3,
    source: '03 §11, 5; 05 §E',
  },
  {
    id: 'auth.140',
    text: 'a late refusal of an older token touches nothing; a second refusal takes a newer token of somebody else and asks nobody',
    milestone: 3,
    source: "03 §5.8, §10 'Refresh'",
  },
  {
    id: 'auth.141',
    text: 'tokens that cannot be saved are not sent and not lost: saving is tried again, before anything else is asked for',
    milestone: 3,
    source: '03 §5.7, 9',
  },
  {
    id: 'auth.142',
    text: 'a token in memory needs no store; a store that cannot be read later is told as that, and changes nothing in memory',
    milestone: 3,
    source: "03 §5.5, §10 'Refresh'",
  },
  {
    id: 'auth.143',
    text: 'a renewal that was cut off may have used its refresh token up: it is not sent again, unless that server leaves refresh tokens as they are',
    milestone: 3,
    source: '03 §5.7, 10; RFC 9700 4.14.2',
  },
  {
    id: 'auth.144',
    text: 'credentials that nobody is asked about go to the authorization server of the entry and to no other: without one, or without the credentials, the entry is an error',
    milestone: 3,
    source: 'A07; 04 §2.3',
  },
  {
    id: 'auth.145',
    text: 'a program that is killed in the middle of a renewal, wherever that is, costs the others nothing: no refresh token is ever sent twice, and a person signs in anew only for an answer that died with its program',
    milestone: 3,
    source: 'issue 4; 03 §11, 1 to 3; 05 §E',
  },
]
