import type { Requirement } from './requirement.ts'

const EVENT_STREAM = 'HTML, Server-sent events, 9.2.5 and 9.2.6'

export const http: readonly Requirement[] = [
  {
    id: 'wire.130',
    text: 'an event stream is read by the rules of the HTML standard, however its bytes are cut into chunks',
    milestone: 1,
    source: EVENT_STREAM,
  },
  {
    id: 'wire.131',
    text: 'an event over the cap is dropped, whatever fills it, and the events after it are read',
    milestone: 1,
    source: 'A47',
  },
]
