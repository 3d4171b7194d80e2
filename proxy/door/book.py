"""stub"""
from __future__ import annotations

from dataclasses import dataclass

from ..si import si_pb2 as si


@dataclass
class Known:
    nodes: list; applications: list; allocations: list; asks: list
    @property
    def is_empty(self): return not (self.nodes or self.applications)
class PartitionBook:
    def __init__(self, rm_id):
        self.n={}; self.a={}; self.k={}; self.heard=set(); self.recovering=False
    def has_application(self, x): return x in self.a
    def note_nodes(self, nodes):
        for n in nodes:
            if n.action in (si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN): self.n[n.nodeID]=n.SerializeToString()
            elif n.action==si.NodeInfo.DECOMISSION: self.n.pop(n.nodeID,None)
    def note_applications(self, r):
        for n in r.new: self.a[n.applicationID]=n.SerializeToString()
        for n in r.remove: self.a.pop(n.applicationID,None)
    def note_allocations(self, r, s):
        for n in r.allocations: self.k[n.allocationKey]=[n.SerializeToString(), n.nodeID]
        for n in r.releases.allocationsToRelease: self.k.pop(n.allocationKey,None)
        return r
    def take_nodes(self, r):
        if self.recovering: return si.NodeResponse()
        return r
    def take_applications(self, r):
        if self.recovering: return si.ApplicationResponse()
        return r
    def take_allocations(self, r, s):
        for n in r.new:
            if n.allocationKey in self.k: self.k[n.allocationKey][1]=n.nodeID
        for n in r.released: self.k.pop(n.allocationKey,None)
        return r
    def begin_recovery(self):
        self.recovering=True
        al=[];asks=[]
        for raw,node in self.k.values():
            m=si.Allocation.FromString(raw); m.nodeID=node
            (al if node else asks).append(m)
        return Known([si.NodeInfo.FromString(x) for x in self.n.values()],[si.AddApplicationRequest.FromString(x) for x in self.a.values()],al,asks), si.AllocationResponse()
    def end_recovery(self): self.recovering=False
