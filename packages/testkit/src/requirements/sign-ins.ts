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
]
