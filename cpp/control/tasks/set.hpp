// All types of tasks, one per line.
#pragma once

#include <variant>

#include "centroidal.hpp"
#include "forces.hpp"
#include "frame.hpp"
#include "impedance.hpp"
#include "joints.hpp"

namespace sarrus {

using AnyTask = std::variant<  //
    FrameTask,                 //
    ImpedanceTask,             //
    JointsTask,                //
    CenterOfMassTask,          //
    MomentumTask,              //
    MultiplierTask,            //
    ContactForceTask           //
    >;

}  // namespace sarrus
