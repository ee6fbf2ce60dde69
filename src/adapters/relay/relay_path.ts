/** The path of a relay: no other of the API, so that a proxy can lead it to the relay's own port. */
export const RELAY_PATH = '/k8s/relay/streams';
