// The handlers of tethers. The list is answered from the views; everything else goes to the owner.
import type { tethers } from '../../../api/tethers.ts';
import { narrowed } from '../../../protocol/grants.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';

const tethersOf = (app: AppContext) => app.ref('tethers');

export const tetherHandlers: HandlersOf<typeof tethers> = {
  list: ({ cloud }, _key, _query, _reach, principal) => {
    const viewer = narrowed(principal);
    return viewer ? cloud.views.tethersWhere((place) => viewer.may('viewer', place)) : cloud.views.tethers();
  },
  create: ({ app, key: workloadId, body, principal, operationId: id }) => {
    const owned = principal && { owners: principal.subjects };
    return tethersOf(app).ask('create', { workloadId, ...body, ...owned, ...(id && { id }) });
  },
  activate: ({ app, key: id }) => tethersOf(app).ask('activate', { id }),
  deactivate: ({ app, key: id }) => tethersOf(app).ask('deactivate', { id }),
  remove: ({ app, key: id }) => tethersOf(app).ask('remove', { id }),
};
