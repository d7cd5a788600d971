import type { Requirement } from './requirement.ts'

export const extensions: readonly Requirement[] = [
  {
    id: 'ext.001',
    text: 'contributors are called in the order of their registration, over all extensions, and one object may take part in several kinds',
    milestone: 4,
  },
  {
    id: 'ext.002',
    text: 'extensions with the same or a malformed id, and registrations after the installation, are refused when the host is made, with the id',
    milestone: 4,
  },
  {
    id: 'ext.003',
    text: 'a store keeps values by key objects: get, make once, replace and remove; two keys of one name are two, and a store holds 1,024 values at most',
    milestone: 4,
  },
  {
    id: 'ext.004',
    text: 'a contributor that throws, rejects or never answers is named in an event with its callback, and its neighbours are called all the same',
    milestone: 4,
  },
  {
    id: 'ext.005',
    text: 'an abort ends the calling of contributors at once, and nobody further is called',
    milestone: 4,
  },
  {
    id: 'ext.006',
    text: 'the example extension counts tool calls, brings a native tool and tells the model the time of day, through the public entry alone',
    milestone: 4,
  },
]
