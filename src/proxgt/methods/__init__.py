"""Methods, a family a file; `registry` knows them all: a mapping from name to `Entry`."""

from proxgt.methods.base import Cost, Method, Schedule
from proxgt.methods.centralized import FISTA, ProxGD, ProxSGD
from proxgt.methods.composite import DeFW, Projected_DSGD, Prox_DGD
from proxgt.methods.compressors import QSGD, Compressor, Identity, RandomK, TopK
from proxgt.methods.deepstorm import DEEPSTORM_v1, DEEPSTORM_v2, FallingMomentum, FallingStep
from proxgt.methods.diffusion import D2, D_SPIDER_SFO, ExactDiffusion, Prox_ED
from proxgt.methods.diging import D_GET, GNSD, GT_SARAH, DIGing
from proxgt.methods.directed import AB, SGP, Push_DIGing, Push_Pull, TwoMatrices
from proxgt.methods.followups import (
    CDProxSGT,
    DProxSGT,
    FallingRelaxation,
    Prox_DASA,
    Prox_DASA_GT,
)
from proxgt.methods.gradient import DSGD, DSGD_ATC, DecentLaM
from proxgt.methods.nested import DESTRESS, DestressConsensus, Network_SARAH
from proxgt.methods.primal_dual import EXTRA, NIDS, PG_EXTRA
from proxgt.methods.proxgt import ProxGT, ProxGT_SA, ProxGT_SR_E, ProxGT_SR_O
from proxgt.methods.reduced import (
    ProxHSGD,
    ProxSAGA,
    ProxSARAH,
    ProxSpiderBoost,
    ProxSVRG,
)
from proxgt.methods.registry import registry
from proxgt.methods.sppdm import PPDM, SPPDM
from proxgt.methods.successive import NEXT, SONATA
from proxgt.methods.tracking import GT_DSGD, GT_HSGD, GT_SAGA, DeTAG

__all__ = [
    "AB",
    "D2",
    "DESTRESS",
    "DSGD",
    "DSGD_ATC",
    "D_GET",
    "D_SPIDER_SFO",
    "EXTRA",
    "FISTA",
    "GNSD",
    "GT_DSGD",
    "GT_HSGD",
    "GT_SAGA",
    "GT_SARAH",
    "NEXT",
    "NIDS",
    "PG_EXTRA",
    "PPDM",
    "QSGD",
    "SGP",
    "SONATA",
    "SPPDM",
    "CDProxSGT",
    "Compressor",
    "Cost",
    "DEEPSTORM_v1",
    "DEEPSTORM_v2",
    "DIGing",
    "DProxSGT",
    "DeFW",
    "DeTAG",
    "DecentLaM",
    "DestressConsensus",
    "ExactDiffusion",
    "FallingMomentum",
    "FallingRelaxation",
    "FallingStep",
    "Identity",
    "Method",
    "Network_SARAH",
    "Projected_DSGD",
    "ProxGD",
    "ProxGT",
    "ProxGT_SA",
    "ProxGT_SR_E",
    "ProxGT_SR_O",
    "ProxHSGD",
    "ProxSAGA",
    "ProxSARAH",
    "ProxSGD",
    "ProxSVRG",
    "ProxSpiderBoost",
    "Prox_DASA",
    "Prox_DASA_GT",
    "Prox_DGD",
    "Prox_ED",
    "Push_DIGing",
    "Push_Pull",
    "RandomK",
    "Schedule",
    "TopK",
    "TwoMatrices",
    "registry",
]
